"""What Python clients see of TLS, tested with pika. See test.sh."""

import os
import ssl
import unittest

import pika
from pika.exceptions import AMQPError

PORT = int(os.environ["TLS_PORT"])
FOLDER = os.environ["TLS_FOLDER"]
FOREIGN = os.environ["FOREIGN_FOLDER"]


def connect(context, credentials=None):
    options = pika.SSLOptions(context, "localhost")
    parameters = pika.ConnectionParameters(
        "127.0.0.1", PORT, ssl_options=options, credentials=credentials or pika.PlainCredentials("guest", "guest"))
    return pika.BlockingConnection(parameters)


def trusting(folder=FOLDER):
    return ssl.create_default_context(cafile=folder + "/ca.pem")


class TLSTest(unittest.TestCase):
    def test_round_trip(self):
        connection = connect(trusting())
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        body = b"x" * (1 << 20)
        channel.basic_publish("", queue, body)
        self.assertEqual(channel.basic_get(queue, auto_ack=True)[2], body)
        connection.close()

    def test_server_of_another_authority_is_refused(self):
        with self.assertRaises((AMQPError, ssl.SSLError)):
            connect(trusting(FOREIGN))

    def test_client_certificate_beside_a_password(self):
        context = trusting()
        context.load_cert_chain(FOLDER + "/alice.pem", FOLDER + "/alice.key")
        connection = connect(context)
        self.assertTrue(connection.is_open)
        connection.close()

    def test_external_login(self):
        context = trusting()
        context.load_cert_chain(FOLDER + "/alice.pem", FOLDER + "/alice.key")
        connection = connect(context, pika.credentials.ExternalCredentials())
        self.assertTrue(connection.channel().is_open)
        connection.close()

    def test_external_login_of_a_user_that_is_not_there(self):
        context = trusting()
        context.load_cert_chain(FOLDER + "/nobody.pem", FOLDER + "/nobody.key")
        with self.assertRaises(AMQPError):
            connect(context, pika.credentials.ExternalCredentials())

    def test_certificate_of_another_authority_is_refused(self):
        context = trusting()
        context.load_cert_chain(FOREIGN + "/mallory.pem", FOREIGN + "/mallory.key")
        with self.assertRaises((AMQPError, ssl.SSLError, OSError)):
            connect(context)


if __name__ == "__main__":
    unittest.main()
