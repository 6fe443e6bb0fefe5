'use strict';

const { test } = require('node:test');
const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { open, privateQueue, collect, text } = require('./broker');

test('publish and consume in order, with manual acks', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  for (let i = 0; i < 500; i++) channel.sendToQueue(queue, Buffer.from(String(i)));
  const messages = await collect(channel, queue, 500);
  assert.deepEqual(messages.map(text), [...Array(500).keys()].map(String));
  assert.deepEqual(messages.map((m) => m.fields.deliveryTag), [...Array(500).keys()].map((i) => i + 1));
  assert.ok(messages.every((m) => !m.fields.redelivered && m.fields.exchange === '' && m.fields.routingKey === queue));
  channel.ackAll();
  assert.equal((await channel.checkQueue(queue)).messageCount, 0);
});

test('properties and headers come as they were sent', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  const sent = {
    contentType: 'application/json', contentEncoding: 'utf-8', deliveryMode: 2, priority: 5, correlationId: 'correlation',
    replyTo: 'reply', expiration: '60000', messageId: 'id', timestamp: 1700000000, type: 'type', userId: 'guest', appId: 'app',
    headers: { text: 'ä', number: 42, big: 2 ** 40, negative: -1, float: 1.5, yes: true, nothing: null, list: [1, 'two', { three: 3 }], nested: { deep: { deeper: 1 } } },
  };
  channel.sendToQueue(queue, Buffer.from('{}'), sent);
  const got = (await channel.get(queue, { noAck: true })).properties;
  for (const [key, value] of Object.entries(sent)) assert.deepEqual({ ...got }[key], value, key);
});

test('bodies larger than a frame', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  for (const size of [0, 131063, 131064, 131065, 3 << 20]) {
    const body = randomBytes(size);
    channel.sendToQueue(queue, body);
    const message = await channel.get(queue, { noAck: true });
    assert.ok(message.content.equals(body), `${size} bytes`);
  }
});

test('confirms, one by one and all together', async (t) => {
  const { channel } = await open(t, 'createConfirmChannel');
  const queue = `node-confirm-${process.pid}`;
  await channel.assertQueue(queue, { durable: true });
  await new Promise((resolve, reject) => {
    channel.sendToQueue(queue, Buffer.from('first'), { persistent: true }, (err) => (err ? reject(err) : resolve()));
  });
  for (let i = 0; i < 200; i++) channel.sendToQueue(queue, Buffer.from(String(i)), { persistent: i % 2 === 0 });
  await channel.waitForConfirms();
  assert.equal((await channel.checkQueue(queue)).messageCount, 201);
  assert.equal((await channel.deleteQueue(queue)).messageCount, 201);
});

test('a refused message is nacked', async (t) => {
  const { channel } = await open(t, 'createConfirmChannel');
  const queue = await privateQueue(channel, { maxLength: 1, overflow: 'reject-publish' });
  const publish = () => new Promise((resolve) => { channel.sendToQueue(queue, Buffer.from('m'), {}, resolve); });
  assert.equal(await publish(), null);
  assert.ok(await publish() instanceof Error);
});

test('a mandatory message that no queue wants comes back', async (t) => {
  const { channel } = await open(t, 'createConfirmChannel');
  const returned = new Promise((resolve) => { channel.once('return', resolve); });
  channel.publish('amq.topic', 'nobody', Buffer.from('back'), { mandatory: true, headers: { h: 1 } });
  await channel.waitForConfirms();
  const message = await returned;
  assert.equal(message.fields.replyCode, 312);
  assert.equal(message.fields.replyText, 'NO_ROUTE');
  assert.equal(text(message), 'back');
  assert.deepEqual({ ...message.properties.headers }, { h: 1 });
});

test('get, and an empty queue', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  assert.equal(await channel.get(queue), false);
  channel.sendToQueue(queue, Buffer.from('a'));
  channel.sendToQueue(queue, Buffer.from('b'));
  const message = await channel.get(queue);
  assert.equal(text(message), 'a');
  assert.equal(message.fields.messageCount, 1);
  channel.ack(message);
});

test('nack and reject: back to their places, or dropped', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  for (const body of ['a', 'b', 'c', 'd']) channel.sendToQueue(queue, Buffer.from(body));
  const [a, b, c] = [await channel.get(queue), await channel.get(queue), await channel.get(queue)];
  channel.nack(c, false, true);
  channel.reject(a, true);
  channel.nack(b, false, false);
  const left = [];
  for (;;) {
    const message = await channel.get(queue, { noAck: true });
    if (!message) break;
    left.push([text(message), message.fields.redelivered]);
  }
  assert.deepEqual(left, [['a', true], ['c', true], ['d', false]]);
});

test('prefetch, per consumer and per channel', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  await channel.prefetch(2);
  const other = await open(t, 'createConfirmChannel');
  const first = collect(channel, queue, 2);
  for (let i = 0; i < 5; i++) other.channel.publish('', queue, Buffer.from(String(i)));
  await other.channel.waitForConfirms();
  const messages = await first;
  assert.deepEqual(messages.map(text), ['0', '1']);
  assert.equal((await channel.checkQueue(queue)).messageCount, 3);
  channel.ack(messages[1], true);
  await channel.prefetch(3, true);
});

test('remote calls by direct reply-to', async (t) => {
  const server = await open(t);
  const requests = await privateQueue(server.channel);
  await server.channel.consume(requests, (request) => {
    server.channel.sendToQueue(request.properties.replyTo, Buffer.from(text(request).toUpperCase()),
      { correlationId: request.properties.correlationId });
    server.channel.ack(request);
  });
  const client = await open(t);
  const replies = new Map();
  const all = new Promise((resolve) => {
    client.channel.consume('amq.rabbitmq.reply-to', (reply) => {
      replies.set(reply.properties.correlationId, text(reply));
      if (replies.size === 20) resolve();
    }, { noAck: true });
  });
  for (let i = 0; i < 20; i++) {
    client.channel.publish('', requests, Buffer.from(`request ${i}`), { replyTo: 'amq.rabbitmq.reply-to', correlationId: String(i) });
  }
  await all;
  for (let i = 0; i < 20; i++) assert.equal(replies.get(String(i)), `REQUEST ${i}`);
});

test('all exchange types', async (t) => {
  const { channel } = await open(t);
  const got = {};
  for (const [type, key, args] of [['direct', 'k', {}], ['fanout', '', {}], ['topic', 'k.#', {}], ['headers', '', { 'x-match': 'all', h: 1 }]]) {
    const exchange = `node-${type}-${process.pid}`;
    await channel.assertExchange(exchange, type, { autoDelete: true, durable: false });
    const queue = await privateQueue(channel);
    await channel.bindQueue(queue, exchange, key, args);
    channel.publish(exchange, 'k', Buffer.from(type), { headers: { h: 1 } });
    got[type] = text(await channel.get(queue, { noAck: true }));
    await channel.unbindQueue(queue, exchange, key, args);
  }
  assert.deepEqual(got, { direct: 'direct', fanout: 'fanout', topic: 'topic', headers: 'headers' });
});
