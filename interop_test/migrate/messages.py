"""Fills the source of a migration, and checks what has arrived at the target.

    messages.py fill URL COUNT
    messages.py check URL COUNT [TWICE]

TWICE is how many messages of each queue may be there twice.
"""

import sys

import pika

QUEUES = {
    "orders": {},
    "orders.lazy": {"x-queue-mode": "lazy"},
    "orders.priority": {"x-max-priority": 5},
    "orders.quorum": {"x-queue-type": "quorum"},
    "orders.single": {"x-single-active-consumer": True},
}
STREAM = "orders.stream"
PROPERTIES = [
    "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to", "expiration",
    "message_id", "timestamp", "type", "user_id", "app_id", "headers",
]


def properties(n):
    return pika.BasicProperties(
        content_type="text/plain", content_encoding="identity", delivery_mode=1 + n % 2, priority=1 + n % 5,
        correlation_id=f"c{n}", reply_to="answers", expiration="86400000", message_id=str(n),
        timestamp=1700000000 + n, type="order", user_id="guest", app_id="shop",
        headers={
            "n": n, "long": 1 << 40, "text": "ümläut", "yes": True, "none": None, "list": [1, "two", {"three": 3}],
            "x-death": [{"queue": "work", "reason": "rejected", "count": 2, "exchange": "events", "routing-keys": ["a"]}],
        })


def body(n):
    return b"%d " % n + bytes(n % 256 for _ in range(n % 300))


def fill(channel, count):
    channel.exchange_declare("events", "topic", durable=True)
    for name, arguments in {**QUEUES, STREAM: {"x-queue-type": "stream"}}.items():
        channel.queue_declare(name, durable=True, arguments=arguments)
        channel.queue_bind(name, "events", "order.#")
    channel.confirm_delivery()
    for n in range(count):
        channel.basic_publish("events", f"order.{n % 7}", body(n), properties(n), mandatory=True)


def check_message(queue, method, props, got):
    n = int(got.split(b" ")[0])
    want = properties(n)
    wrong = [p for p in PROPERTIES if p != "headers" and getattr(props, p) != getattr(want, p)]
    headers = dict(props.headers)
    headers.pop("x-stream-offset", None)
    if queue == "orders.quorum":
        headers.pop("x-delivery-count", None)
    kept = want.headers
    if queue == STREAM:  # RabbitMQ 3.10 itself stores no lists and tables among the headers of a stream
        kept = {k: v for k, v in kept.items() if not isinstance(v, list)}
    if wrong or headers != kept or got != body(n) or method.routing_key != f"order.{n % 7}":
        sys.exit(f"{queue}: message {n} differs in {wrong}: {method} {props} {got[:20]}")
    return n


def order_within(queue, count):
    """Lists of messages, each of which must come in its order."""
    everything = range(count)
    if queue == "orders.priority":
        return [sorted(everything, key=lambda n: -(n % 5))]
    if queue == "orders.quorum":  # two of priority 5 and more for each below, as in RabbitMQ 4
        return [[n for n in everything if n % 5 == 4], [n for n in everything if n % 5 < 4]]
    return [list(everything)]


def check_order(queue, numbers, count, twice):
    order = list(dict.fromkeys(numbers))
    if len(order) != count:
        sys.exit(f"{queue}: {len(order)} different messages, want {count}")
    for want in order_within(queue, count):
        members = set(want)
        if [n for n in order if n in members] != want:
            sys.exit(f"{queue}: the messages are not in order")
    if len(numbers) - count > twice:
        sys.exit(f"{queue}: {len(numbers) - count} messages are there twice, want at most {twice}")
    print(f"{queue}: {count} messages in order, {len(numbers) - count} of them twice")


def check_queue(channel, queue, count, twice):
    numbers = []
    while True:
        method, props, got = channel.basic_get(queue, auto_ack=True)
        if method is None:
            break
        numbers.append(check_message(queue, method, props, got))
    check_order(queue, numbers, count, twice)


def check_stream(channel, count, twice):
    numbers = []
    channel.basic_qos(prefetch_count=100)
    for method, props, got in channel.consume(STREAM, arguments={"x-stream-offset": "first"}, inactivity_timeout=1):
        if method is None:
            break
        numbers.append(check_message(STREAM, method, props, got))
        channel.basic_ack(method.delivery_tag)
    check_order(STREAM, numbers, count, twice)


def main():
    what, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    twice = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    if what == "fill":
        fill(channel, count)
        return
    for queue in QUEUES:
        check_queue(channel, queue, count, twice)
    check_stream(channel, count, twice)


main()
