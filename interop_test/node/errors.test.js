'use strict';

const { test } = require('node:test');
const assert = require('node:assert/strict');
const amqplib = require('amqplib');
const callbacks = require('amqplib/callback_api');
const { url, connect, open, privateQueue, collect, closed } = require('./broker');

test('a channel error leaves the connection open', async (t) => {
  const { connection, channel } = await open(t);
  await assert.rejects(channel.checkQueue('no-such-queue'), (err) => err.code === 404
    && err.message.includes("NOT_FOUND - no queue 'no-such-queue' in vhost '/'"));
  const next = await connection.createChannel();
  await privateQueue(next);
});

test('the codes of refused declarations', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  for (const [code, refused] of [
    [403, (ch) => ch.assertQueue('amq.mine')],
    [404, (ch) => ch.bindQueue(queue, 'no-such-exchange', '')],
    [405, (ch) => ch.consume(queue, () => {})],
    [406, (ch) => ch.assertExchange('amq.direct', 'fanout')],
  ]) {
    const other = await open(t);
    await assert.rejects(refused(other.channel), { code });
  }
});

test('publishing to a missing exchange closes the channel', async (t) => {
  const { channel } = await open(t);
  const error = closed(channel);
  channel.publish('no-such-exchange', '', Buffer.from('m'));
  assert.equal((await error).code, 404);
});

test('acknowledging twice closes the channel', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  channel.sendToQueue(queue, Buffer.from('m'));
  const message = await channel.get(queue);
  const error = closed(channel);
  channel.ack(message);
  channel.ack(message);
  const { code, message: reason } = await error;
  assert.equal(code, 406);
  assert.match(reason, /PRECONDITION_FAILED - unknown delivery tag 1/);
});

test('a connection error', async (t) => {
  const { connection, channel } = await open(t);
  const queue = await privateQueue(channel);
  const error = closed(connection);
  await channel.consume(queue, () => {}, { consumerTag: 'tag' });
  channel.consume(queue, () => {}, { consumerTag: 'tag' }).catch(() => {});
  const { code, message } = await error;
  assert.equal(code, 530);
  assert.match(message, /attempt to reuse consumer tag 'tag'/);
});

test('a wrong password', async () => {
  const wrong = new URL(url);
  wrong.password = 'wrong';
  await assert.rejects(amqplib.connect(wrong.href), /ACCESS_REFUSED - Login was refused|403/);
});

test('a missing vhost', async () => {
  const wrong = new URL(url);
  wrong.pathname = '/nope';
  await assert.rejects(amqplib.connect(wrong.href), /ConnectionClose/); // amqplib does not say why
});

test('a deleted queue cancels its consumers', async (t) => {
  const { channel } = await open(t);
  const queue = await privateQueue(channel);
  const cancelled = collect(channel, queue, 1);
  await channel.checkQueue(queue);
  await channel.deleteQueue(queue);
  assert.deepEqual(await cancelled, [null]);
});

test('options of the connection', async (t) => {
  const named = await connect(t, { clientProperties: { connection_name: 'named' } });
  assert.equal(named.connection.serverProperties.capabilities['basic.nack'], true);
  const tuned = await amqplib.connect(`${url}?heartbeat=7&channelMax=5&frameMax=8192`);
  t.after(() => tuned.close());
  assert.deepEqual([tuned.connection.heartbeat, tuned.connection.channelMax, tuned.connection.frameMax], [7, 5, 8192]);
  await (await tuned.createChannel()).close();
});

test('the callback interface', (t, done) => {
  callbacks.connect(url, (err, connection) => {
    assert.ifError(err);
    connection.createChannel((err, channel) => {
      assert.ifError(err);
      channel.assertQueue('', { exclusive: true }, (err, { queue }) => {
        assert.ifError(err);
        channel.consume(queue, (message) => {
          assert.equal(message.content.toString(), 'by callback');
          connection.close(done);
        }, { noAck: true });
        channel.sendToQueue(queue, Buffer.from('by callback'));
      });
    });
  });
});
