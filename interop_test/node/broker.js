'use strict';

const amqplib = require('amqplib');

const url = process.env.AMQP_URL;
if (!url) throw new Error('AMQP_URL must name the broker to test, as in amqp://guest:guest@127.0.0.1:5672/');

// connect opens a connection that ends with the test. Errors that the test
// waits for come as events; unexpected ones make it fail by what is missing.
async function connect(t, options) {
  const connection = await amqplib.connect(url, options);
  connection.on('error', () => {});
  t.after(() => connection.close().catch(() => {})); // the test may have ended it
  return connection;
}

// open opens a connection and a channel of it.
async function open(t, kind = 'createChannel') {
  const connection = await connect(t);
  const channel = await connection[kind]();
  channel.on('error', () => {});
  return { connection, channel };
}

// privateQueue declares a queue that ends with the connection.
async function privateQueue(channel, options) {
  const { queue } = await channel.assertQueue('', { exclusive: true, ...options });
  return queue;
}

// collect consumes and resolves with the first n messages.
function collect(channel, queue, n, options) {
  return new Promise((resolve, reject) => {
    const messages = [];
    channel.consume(queue, (message) => {
      messages.push(message);
      if (messages.length === n) resolve(messages);
    }, options).catch(reject);
  });
}

// closed resolves with the error that ends a channel or connection.
function closed(emitter) {
  return new Promise((resolve) => { emitter.once('error', resolve); });
}

const text = (message) => message.content.toString();

module.exports = { url, connect, open, privateQueue, collect, closed, text };
