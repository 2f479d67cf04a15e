import Foundation
@testable import struct Lib.Part

let maxItems = 50
let paymentKey = "sk_live_4eC39HqLyjWDarjtT1zdp7dc" // smell: HARDCODED_CONFIGURATION
let ids = [1031, 2047, 4093]

var lastOrder = 0 // smell: GLOBAL_VARIABLES
var cache: [String: Int] = [:] // smell: MUTABLE_SHARED_STATE

func remember(id: Int, name: String) {
    lastOrder = id
    cache[name] = id
}

func forget(_ name: String) -> Int {
    cache.removeValue(forKey: name)
    cache = [:]
    return lastOrder
}

struct Order {
    static var opened = 0 // smell: MUTABLE_SHARED_STATE
    static let limit = 1_000
    let id: Int
    var title = "none"
    var total: Int { id * 2 }
    var isLarge: Bool { total > 1_750 } // smell: MAGIC_NUMBERS

    static func open() {
        opened += 1
    }

    static func reopen() {
        Order.opened = 0
    }
}

final class Shop: Base, Sendable {
    private let mailer = MailService(name: "shop") // smell: TIGHT_COUPLING
    private let lock = NSLock()
    let timeout = 45.seconds
    var retries = 3
    var orders: OrderRepository

    init(orders: OrderRepository, file: String) throws {
        self.orders = orders
        retries = try load(file)[500]
        super.init()
    }

    func ship(_ order: Order, weight: Double) throws -> Double {
        let stale = orders.find(order.id) // smell: DEAD_CODE
        let locale: String = "en"
        if weight > 31.5 { // smell: MAGIC_NUMBERS
            return weight
        }
        do {
            try mailer.send(order.title, "\(locale) \(order.id)")
        } catch { // smell: MISSING_ERROR_HANDLING
        }
        do {
            try mailer.send(order.title, locale)
        } catch {
            print(error)
        }
        try? mailer.close() // smell: MISSING_ERROR_HANDLING
        _ = try? mailer.close() // smell: MISSING_ERROR_HANDLING
        let text = try! mailer.read(locale) // smell: MISSING_ERROR_HANDLING
        let size = try? mailer.size()
        guard let size, size > retries else { return 0 }
        switch order.id {
        case 404, 405: print("gone \(text)")
        case 500...599: print("failed")
        default: print("sent")
        }
        return price(order, weight: weight, zone: 1)
        print("never") // smell: DEAD_CODE
    }

    private func price(_ order: Order, weight: Double, zone: Int) -> Double { // smell: DEAD_CODE
        let total = max(Double(order.total), weight)
        orders.store(order)
        return total
    }

    private func inspect(_ order: Order) { // smell: DEAD_CODE
        orders.store(order)
    }

    @objc private func tapped(_ sender: Any) {
        orders.store(Order(id: 7))
    }

    func describe() -> String {
        if true { // smell: DEAD_CODE
            return "shop"
        }
        while true {
            retries -= 1
        }
    }
}

func register(a: Int, b: Int, c: Int, d: Int, e: Int, f: Int, g: Int, h: Int) -> Int { a } // smell: COMPLEX_FUNCTIONS

func audit(_ shop: Shop) { // smell: LONG_METHOD
    shop.update(item#) // times: 70
}

class Warehouse { // smell: GOD_CLASS
    func shelf#(at: Int) -> Int { at } // times: 40
}

func sumOfLarge(orders: [Order], limit: Int) -> Int {
    var total = 0
    for order in orders {
        if order.total > limit, !order.title.isEmpty {
            total += order.total
            print("large order \(order.id)")
        } else if order.total == 0 {
            print("empty order \(order.id)")
        }
    }
    return total
}

func sumOfSmall(orders: [Order], limit: Int) -> Int { // smell: DUPLICATE_CODE
    var total = 0
    for order in orders {
        if order.total > limit, !order.title.isEmpty {
            total += order.total
            print("large order \(order.id)")
        } else if order.total == 0 {
            print("empty order \(order.id)")
        }
    }
    return total
}
