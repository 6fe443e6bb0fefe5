"""Fills a broker for the check of its stop: clients.py PORT CONNECTIONS MESSAGES

Publishes persistent messages into one queue, opens the connections, each with a
channel and every tenth with a consumer that acknowledges nothing, says "ready"
and how many messages the queue had, and waits for its end: it answers no connection.close, as a client that hangs.
"""

import socket
import struct
import sys


def method(channel, class_id, method_id, payload=b""):
    body = struct.pack(">HH", class_id, method_id) + payload
    return struct.pack(">BHI", 1, channel, len(body)) + body + b"\xce"


def short(text):
    return bytes([len(text)]) + text


def long(text):
    return struct.pack(">I", len(text)) + text


def read(sock, count):
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            sys.exit("the broker has closed the connection")
        data += part
    return data


def answer(sock):
    """Reads one frame and returns its payload."""
    _, _, size = struct.unpack(">BHI", read(sock, 7))
    return read(sock, size + 1)[:-1]


def connect(port):
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(b"AMQP\x00\x00\x09\x01")
    answer(sock)
    sock.sendall(method(0, 10, 11, long(b"") + short(b"PLAIN") + long(b"\x00guest\x00guest") + short(b"en_US")))
    answer(sock)
    sock.sendall(method(0, 10, 31, struct.pack(">HIH", 10, 131072, 0)) + method(0, 10, 40, short(b"/") + short(b"") + b"\x00"))
    answer(sock)
    sock.sendall(method(1, 20, 10, short(b"")))
    answer(sock)
    return sock


def fill(sock, count):
    """Publishes, and returns how many messages the queue has ready."""
    sock.sendall(method(1, 50, 10, struct.pack(">H", 0) + short(b"stop") + b"\x02" + long(b"")))
    answer(sock)
    body = b"x" * 100
    header = struct.pack(">HHQHB", 60, 0, len(body), 0x1000, 2)
    one = method(1, 60, 40, struct.pack(">H", 0) + short(b"") + short(b"stop") + b"\x00")
    one += struct.pack(">BHI", 2, 1, len(header)) + header + b"\xce" + struct.pack(">BHI", 3, 1, len(body)) + body + b"\xce"
    for _ in range(count // 1000):
        sock.sendall(one * 1000)
    sock.sendall(method(1, 50, 10, struct.pack(">H", 0) + short(b"stop") + b"\x03" + long(b"")))
    payload = answer(sock)  # class, method, the name with its length, messages, consumers
    return struct.unpack(">I", payload[-8:-4])[0]


def main():
    port, connections, messages = (int(a) for a in sys.argv[1:4])
    sockets = [connect(port)]
    ready = fill(sockets[0], messages)
    for n in range(connections):
        sock = connect(port)
        if n % 10 == 0:
            sock.sendall(method(1, 60, 10, struct.pack(">IHB", 0, 20, 0)))
            answer(sock)
            sock.sendall(method(1, 60, 20, struct.pack(">H", 0) + short(b"stop") + short(b"") + b"\x00" + long(b"")))
            answer(sock)
        sockets.append(sock)
    print("ready", ready, flush=True)
    sys.stdin.read()


main()
