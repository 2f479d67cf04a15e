package com.example
package shop

import java.io.File
import java.util.{Locale, UUID => Uuid} // smell: DEAD_CODE
import scala.collection.mutable
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.Future // smell: DEAD_CODE
import cats.syntax.all._

object Registry {
  val MaxItems = 50
  val paymentKey = "sk_live_4eC39HqLyjWDarjtT1zdp7dc" // smell: HARDCODED_CONFIGURATION
  val ids = List(1031, 2047, 4093)
  private var lastOrder = 0 // smell: GLOBAL_VARIABLES
  var opened = 0 // smell: MUTABLE_SHARED_STATE
  val cache = mutable.Map.empty[String, Int] // smell: MUTABLE_SHARED_STATE
  @volatile var closed = 0

  def open(id: Int): Unit = {
    lastOrder = id
    opened += 1
    cache += "open" -> id
  }

  def reopen(name: String): Int = {
    Registry.opened = 0
    cache.remove(name)
    lastOrder
  }
}

case class Order(id: Int, title: String = "none", total: Int) {
  def isLarge: Boolean = total > 1750 // smell: MAGIC_NUMBERS
}

class Shop(orders: OrderRepository)(implicit clock: Clock) {
  private val mailer = new MailService("shop") // smell: TIGHT_COUPLING
  private val lock = new Object
  val timeout = 45.seconds
  var retries = 3

  def this(file: File) = {
    this(new OrderRepository(file))
    this.retries = Registry.MaxItems
  }

  def ship(order: Order, weight: Double): Double = {
    val stale = orders.find(order.id) // smell: DEAD_CODE
    implicit val ordering = Ordering.by(weight)
    val locale: String = "en"
    if (weight > 31.5) { // smell: MAGIC_NUMBERS
      return weight
    }
    try mailer.send(order.title, s"$locale ${order.id}")
    catch {
      case _: Exception => () // smell: MISSING_ERROR_HANDLING
      case e: InterruptedException => throw e
    }
    try {
      mailer.send(order.title, locale)
    } catch {
      case NonFatal(e) => println(e)
    }
    order.id match {
      case 404 | 405 => println("gone")
      case n if n > weight => ()
      case _ => println("sent")
    }
    return price(order, weight)
    println("never") // smell: DEAD_CODE
  }

  private def price(order: Order, weight: Double, zone: Int): Double = { // smell: DEAD_CODE
    val total = math.max(order.total.toDouble, weight)
    orders.store(order)
    total
  }

  private def inspect(order: Order): Unit = { // smell: DEAD_CODE
    orders.store(order)
  }

  private[shop] def visible(order: Order): Unit = orders.store(order)

  private def locked[A](id: Int)(block: => A)(implicit clock: Clock): A = lock.synchronized {
    orders.touch(id)
    block
  }

  def update(order: Order): Unit = locked(order.id) { orders.store(order) }

  override def toString: String = {
    if (true) { // smell: DEAD_CODE
      "shop"
    } else {
      "closed shop"
    }
  }
}

trait Prices {
  def register(a: Int, b: Int, c: Int, d: Int, e: Int, f: Int, g: Int, h: Int): Int = a // smell: COMPLEX_FUNCTIONS

  def audit(shop: Shop): Unit = { // smell: LONG_METHOD
    shop.update(item#) // times: 70
  }
}

class Warehouse { // smell: GOD_CLASS
  def shelf#(at: Int): Int = at // times: 40
}

class Reports {
  def sumOfLarge(orders: List[Order], limit: Int): Int = {
    var total = 0
    for (order <- orders) {
      if (order.total > limit && order.title.nonEmpty) {
        total += order.total
        println(s"large order ${order.id}")
      } else if (order.total == 0) {
        println(s"empty order ${order.id}")
      }
    }
    total
  }

  def sumOfSmall(orders: List[Order], limit: Int): Int = { // smell: DUPLICATE_CODE
    var total = 0
    for (order <- orders) {
      if (order.total > limit && order.title.nonEmpty) {
        total += order.total
        println(s"large order ${order.id}")
      } else if (order.total == 0) {
        println(s"empty order ${order.id}")
      }
    }
    total
  }
}
