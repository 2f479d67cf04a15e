package com.example.shop

import java.io.File
import java.util.Locale // smell: DEAD_CODE
import kotlin.math.max
import kotlin.properties.ReadOnlyProperty as Reader // smell: DEAD_CODE
import kotlinx.coroutines.flow.*
import org.example.getValue

const val MAX_ITEMS = 50
const val PAYMENT_KEY = "sk_live_4eC39HqLyjWDarjtT1zdp7dc" // smell: HARDCODED_CONFIGURATION

var lastOrder = 0 // smell: GLOBAL_VARIABLES
val cache = mutableMapOf<String, Int>() // smell: MUTABLE_SHARED_STATE
val ids = listOf(1031, 2047, 4093)

fun remember(id: Int, name: String) {
    lastOrder = id
    cache[name] = id
}

fun forget(name: String): Int {
    cache.remove(name)
    return lastOrder
}

object Registry {
    var opened = 0 // smell: MUTABLE_SHARED_STATE
    @Volatile
    var closed = 0

    fun open() {
        opened += 1
        closed++
    }

    fun reopen() {
        Registry.opened = 0
        closed = 1
    }
}

data class Order(val id: Int, val title: String = "none") {
    var total = 0
    val isLarge: Boolean
        get() = total > 1_750 // smell: MAGIC_NUMBERS
}

class Shop(private val orders: OrderRepository) {
    private val mailer = MailService("shop") // smell: TIGHT_COUPLING
    private val lock = Any()
    val timeout = 45.seconds
    var retries = 3

    constructor(file: File) : this(OrderRepository(file)) {
        this.retries = MAX_ITEMS
    }

    fun ship(order: Order, weight: Double): Double {
        val stale = orders.find(order.id) // smell: DEAD_CODE
        val fee by lazy { weight * 2 }
        val locale: String = "en"
        if (weight > 31.5) { // smell: MAGIC_NUMBERS
            return fee
        }
        try {
            mailer.send(order.title, "$locale ${order.id}")
        } catch (e: Exception) { // smell: MISSING_ERROR_HANDLING
        }
        try {
            mailer.send(order.title, locale)
        } catch (e: Exception) {
            println(e)
        }
        when (order.id) {
            404, 405 -> println("gone")
            in 500..599 -> println("failed")
            else -> println("sent")
        }
        return price(order, weight)
        println("never") // smell: DEAD_CODE
    }

    private fun price(order: Order, weight: Double, zone: Int = 1): Double { // smell: DEAD_CODE
        val total = max(order.total.toDouble(), weight)
        orders.store(order)
        return total
    }

    private fun inspect(order: Order) { // smell: DEAD_CODE
        orders.store(order)
    }

    private inline fun locked(block: Shop.() -> Unit) {
        synchronized(lock) { this.block() }
    }

    fun update(order: Order) = locked { orders.store(order) }

    override fun toString(): String {
        if (true) { // smell: DEAD_CODE
            return "shop"
        }
        while (true) {
            retries--
        }
    }
}

fun register(a: Int, b: Int, c: Int, d: Int, e: Int, f: Int, g: Int, h: Int, i: Int) = a // smell: COMPLEX_FUNCTIONS

fun audit(shop: Shop) { // smell: LONG_METHOD
    shop.update(item#) // times: 70
}

class Warehouse { // smell: GOD_CLASS
    fun shelf#(at: Int) = at // times: 40
}

fun sumOfLarge(orders: List<Order>, limit: Int): Int {
    var total = 0
    for (order in orders) {
        if (order.total > limit && order.title.isNotEmpty()) {
            total += order.total
            println("large order ${order.id}")
        } else if (order.total == 0) {
            println("empty order ${order.id}")
        }
    }
    return total
}

fun sumOfSmall(orders: List<Order>, limit: Int): Int { // smell: DUPLICATE_CODE
    var total = 0
    for (order in orders) {
        if (order.total > limit && order.title.isNotEmpty()) {
            total += order.total
            println("large order ${order.id}")
        } else if (order.total == 0) {
            println("empty order ${order.id}")
        }
    }
    return total
}
