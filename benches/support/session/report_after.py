def total(rows):
    return sum(row["amount"] for row in rows)


def classify(row, currency, country, plan, coupon, region, seats, trial):
    if row["amount"] > 1000:
        if country == "DE":
            if plan == "pro":
                if coupon:
                    if seats > 10:
                        return "large discounted"
                    elif seats > 5:
                        return "medium discounted"
                elif trial:
                    return "trial"
                else:
                    return "large"
            elif plan == "free":
                return "impossible"
        elif country == "FR":
            if coupon and seats > 10:
                return "large discounted"
            elif coupon or trial:
                return "discounted"
        elif region == "APAC":
            for other in row["others"]:
                if other["amount"] > 100 and other["currency"] == currency:
                    return "linked"
    elif row["amount"] < 0:
        return "refund"
    return "small"
