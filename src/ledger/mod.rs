//! Pure projection: records in, a bounded ledger and details out. No IO, no clock; imports `domain` only.
