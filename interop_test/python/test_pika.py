"""What Python clients see of the broker, tested with pika.

AMQP_URL names the broker. python3 -m unittest discover interop_test/python
"""

import functools
import os
import threading
import time
import unittest

import pika
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    NackError,
    UnroutableError,
)

URL = os.environ["AMQP_URL"]
PATIENCE = 60  # seconds to wait for what must come


class BlockingTest(unittest.TestCase):
    """The blocking connection, which most scripts use."""

    def setUp(self):
        self.connection = self.connect()
        self.channel = self.connection.channel()

    def connect(self):
        connection = pika.BlockingConnection(pika.URLParameters(URL))
        self.addCleanup(lambda: connection.is_open and connection.close())
        return connection

    def private_queue(self, **arguments):
        declared = self.channel.queue_declare("", exclusive=True, arguments=arguments or None)
        return declared.method.queue

    def publish(self, queue, *bodies, channel=None, **options):
        for body in bodies:
            (channel or self.channel).basic_publish("", queue, body, **options)

    def drain(self, queue):
        bodies = []
        while True:
            method, _, body = self.channel.basic_get(queue, auto_ack=True)
            if method is None:
                return bodies
            bodies.append(body.decode())

    def test_consume_in_order(self):
        queue = self.private_queue()
        self.publish(queue, *(str(i) for i in range(300)))
        got = []
        for method, _, body in self.channel.consume(queue, inactivity_timeout=PATIENCE):
            self.assertIsNotNone(method, "nothing came")
            got.append(body.decode())
            self.channel.basic_ack(method.delivery_tag)
            if len(got) == 300:
                break
        self.assertEqual(self.channel.cancel(), 0)
        self.assertEqual(got, [str(i) for i in range(300)])
        self.assertEqual(self.drain(queue), [])

    def test_consume_with_a_callback(self):
        queue = self.private_queue()
        got = []

        def receive(channel, method, properties, body):
            got.append((body.decode(), properties.message_id))
            channel.basic_ack(method.delivery_tag, multiple=True)
            if len(got) == 2:
                channel.stop_consuming()

        self.channel.basic_qos(prefetch_count=1)
        self.channel.basic_consume(queue, receive)
        self.publish(queue, "a", "b", properties=pika.BasicProperties(message_id="id"))
        self.channel.start_consuming()
        self.assertEqual(got, [("a", "id"), ("b", "id")])

    def test_properties_and_headers(self):
        queue = self.private_queue()
        headers = {
            "text": "ä", "int": 7, "long": 2**40, "negative": -3, "yes": True, "none": None,
            "list": [1, "two", [3]], "table": {"deep": {"deeper": 1}}, "bytes": b"\x00\xff",
        }
        sent = pika.BasicProperties(
            content_type="text/plain", content_encoding="utf-8", headers=headers, delivery_mode=2, priority=3,
            correlation_id="correlation", reply_to="reply", expiration="60000", message_id="id", timestamp=1700000000,
            type="type", user_id="guest", app_id="app", cluster_id="cluster",
        )
        self.publish(queue, b"body", properties=sent)
        _, got, _ = self.channel.basic_get(queue, auto_ack=True)
        self.assertEqual(got, sent)

    def test_large_body(self):
        queue = self.private_queue()
        body = os.urandom(1 << 20)
        self.publish(queue, body)
        _, _, got = self.channel.basic_get(queue, auto_ack=True)
        self.assertEqual(got, body)

    def test_confirms(self):
        self.channel.confirm_delivery()
        queue = f"python-confirm-{os.getpid()}"
        self.channel.queue_declare(queue, durable=True)
        self.publish(queue, *(str(i) for i in range(50)), properties=pika.BasicProperties(delivery_mode=2))
        self.assertEqual(self.channel.queue_declare(queue, passive=True).method.message_count, 50)
        self.assertEqual(self.channel.queue_delete(queue).method.message_count, 50)

    def test_unroutable_and_refused(self):
        self.channel.confirm_delivery()
        with self.assertRaises(UnroutableError) as caught:
            self.publish("nobody", "m", mandatory=True)
        self.assertEqual(caught.exception.messages[0].method.reply_code, 312)
        queue = self.private_queue(**{"x-max-length": 1, "x-overflow": "reject-publish"})
        self.publish(queue, "m")
        with self.assertRaises(NackError):
            self.publish(queue, "m")

    def test_nack_and_reject(self):
        queue = self.private_queue()
        self.publish(queue, "a", "b", "c", "d")
        tags = [self.channel.basic_get(queue)[0].delivery_tag for _ in range(3)]
        self.channel.basic_nack(tags[2], requeue=True)
        self.channel.basic_reject(tags[0], requeue=True)
        self.channel.basic_nack(tags[1], requeue=False)
        method, _, body = self.channel.basic_get(queue, auto_ack=True)
        self.assertEqual((body, method.redelivered, method.message_count), (b"a", True, 2))
        self.assertEqual(self.drain(queue), ["c", "d"])

    def test_exchanges(self):
        for kind, key, arguments in (
            ("direct", "k", None), ("fanout", "", None), ("topic", "*.#", None), ("headers", "", {"x-match": "any", "h": 1}),
        ):
            with self.subTest(kind):
                exchange = f"python-{kind}-{os.getpid()}"
                self.channel.exchange_declare(exchange, kind, auto_delete=True)
                queue = self.private_queue()
                self.channel.queue_bind(queue, exchange, key, arguments)
                self.channel.basic_publish(exchange, "k", b"m", pika.BasicProperties(headers={"h": 1}))
                self.assertEqual(self.drain(queue), ["m"])
                self.channel.queue_unbind(queue, exchange, key, arguments)

    def test_transactions(self):
        queue = self.private_queue()
        self.channel.tx_select()
        self.publish(queue, "undone")
        self.channel.tx_rollback()
        self.publish(queue, "done")
        self.channel.tx_commit()
        self.assertEqual(self.drain(queue), ["done"])

    def test_direct_reply_to(self):
        requests = self.private_queue()

        def answer(channel, _, properties, body):
            channel.basic_publish("", properties.reply_to, body.upper(), pika.BasicProperties(correlation_id=properties.correlation_id))

        self.channel.basic_consume(requests, answer, auto_ack=True)
        replies = []
        client = self.connection.channel()
        client.basic_consume("amq.rabbitmq.reply-to", lambda _c, _m, p, body: replies.append((p.correlation_id, body)), auto_ack=True)
        client.basic_publish("", requests, b"hello", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="1"))
        deadline = time.monotonic() + PATIENCE
        while not replies and time.monotonic() < deadline:
            self.connection.process_data_events(time_limit=0.1)
        self.assertEqual(replies, [("1", b"HELLO")])

    def test_channel_error(self):
        with self.assertRaises(ChannelClosedByBroker) as caught:
            self.channel.queue_declare("no-such-queue", passive=True)
        self.assertEqual((caught.exception.reply_code, caught.exception.reply_text), (404, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'"))
        self.channel = self.connection.channel()
        self.private_queue()

    def test_error_codes(self):
        queue = self.private_queue()
        for code, refused in (
            (403, lambda channel: channel.queue_declare("amq.mine")),
            (404, lambda channel: channel.queue_bind(queue, "no-such-exchange", "")),
            (406, lambda channel: channel.exchange_declare("amq.direct", "fanout")),
        ):
            with self.subTest(code), self.assertRaises(ChannelClosedByBroker) as caught:
                refused(self.connection.channel())
            self.assertEqual(caught.exception.reply_code, code)
        with self.assertRaises(ChannelClosedByBroker) as caught:
            self.connect().channel().basic_get(queue)
        self.assertEqual(caught.exception.reply_code, 405)

    def test_connection_error(self):
        with self.assertRaises(ConnectionClosedByBroker) as caught:
            self.channel.basic_qos(prefetch_size=10)
        self.assertEqual((caught.exception.reply_code, caught.exception.reply_text), (540, "NOT_IMPLEMENTED - prefetch_size!=0 (10)"))

    def test_wrong_password(self):
        parameters = pika.URLParameters(URL)
        parameters.credentials = pika.PlainCredentials("guest", "wrong")
        with self.assertRaises(AMQPConnectionError):
            pika.BlockingConnection(parameters)

    def test_heartbeats(self):
        parameters = pika.URLParameters(URL)
        parameters.heartbeat = 1
        connection = pika.BlockingConnection(parameters)
        self.addCleanup(connection.close)
        for _ in range(8):
            connection.process_data_events(time_limit=0.5)
        connection.channel()

    def test_cancelled_by_the_broker(self):
        queue = self.private_queue()
        events = self.channel.consume(queue, inactivity_timeout=PATIENCE)
        self.publish(queue, "m")
        self.assertEqual(next(events)[2], b"m")
        self.connection.channel().queue_delete(queue)
        self.assertEqual(list(events), [])

    def test_threads(self):
        queue = self.private_queue()

        def publish():
            connection = pika.BlockingConnection(pika.URLParameters(URL))
            channel = connection.channel()
            channel.confirm_delivery()
            for _ in range(50):
                channel.basic_publish("", queue, b"m")
            connection.close()

        threads = [threading.Thread(target=publish) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.drain(queue)), 200)


class SelectTest(unittest.TestCase):
    """The asynchronous connection on its own event loop."""

    def run_loop(self, opened):
        """Runs opened(connection, channel, done) until done is called."""
        outcome = []

        def done(result):
            outcome.append(result)
            connection.close()

        def on_open(connection):
            connection.channel(on_open_callback=lambda channel: opened(connection, channel, done))

        def on_open_error(_, error):
            outcome.append(error)
            connection.ioloop.stop()

        connection = pika.SelectConnection(
            pika.URLParameters(URL), on_open_callback=on_open, on_open_error_callback=on_open_error,
            on_close_callback=lambda connection, _: connection.ioloop.stop(),
        )
        connection.ioloop.call_later(PATIENCE, connection.ioloop.stop)
        connection.ioloop.start()
        self.assertEqual(len(outcome), 1, "the loop ended without a result")
        return outcome[0]

    def test_publish_confirm_consume(self):
        confirmed, got = set(), []

        def opened(_, channel, done):
            def finish_if_complete():
                if len(confirmed) == 100 and len(got) == 100:
                    done("complete")

            def on_confirm(frame):
                method, last = frame.method, frame.method.delivery_tag
                first = max(confirmed, default=0) + 1 if method.multiple else last
                confirmed.update(range(first, last + 1))
                finish_if_complete()

            def on_message(channel, method, _, body):
                got.append(int(body))
                channel.basic_ack(method.delivery_tag)
                finish_if_complete()

            def on_queue(frame):
                queue = frame.method.queue
                channel.basic_consume(queue, on_message)
                channel.confirm_delivery(on_confirm, callback=functools.partial(on_select, queue))

            def on_select(queue, _):
                for i in range(100):
                    channel.basic_publish("", queue, str(i))

            channel.queue_declare("", exclusive=True, callback=on_queue)

        self.assertEqual(self.run_loop(opened), "complete")
        self.assertEqual(got, list(range(100)))
        self.assertEqual(confirmed, set(range(1, 101)))

    def test_channel_closed_by_the_broker(self):
        def opened(_, channel, done):
            channel.add_on_close_callback(lambda _, reason: done((reason.reply_code, reason.reply_text)))
            channel.queue_declare("no-such-queue", passive=True)

        self.assertEqual(self.run_loop(opened), (404, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'"))


if __name__ == "__main__":
    unittest.main()
