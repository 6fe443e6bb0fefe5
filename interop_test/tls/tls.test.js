'use strict';

const { test } = require('node:test');
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const amqplib = require('amqplib');

const { TLS_PORT, TLS_FOLDER, FOREIGN_FOLDER } = process.env;
const ca = [readFileSync(`${TLS_FOLDER}/ca.pem`)];
const url = (userinfo) => `amqps://${userinfo}localhost:${TLS_PORT}/`;

// certificate reads a client's certificate and key.
const certificate = (folder, name) => ({ cert: readFileSync(`${folder}/${name}.pem`), key: readFileSync(`${folder}/${name}.key`) });

// roundTrip publishes a message, large enough for many TLS records, and gets it
// back.
async function roundTrip(connection) {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const body = Buffer.alloc(1 << 20, 'x');
  channel.sendToQueue(queue, body);
  await channel.waitForConfirms();
  const message = await channel.get(queue, { noAck: true });
  assert.ok(message.content.equals(body));
}

test('a message over TLS', async () => {
  const connection = await amqplib.connect(url('guest:guest@'), { ca });
  await roundTrip(connection);
  await connection.close();
});

test('a client that does not know the authority refuses the server', async () => {
  await assert.rejects(amqplib.connect(url('guest:guest@'), {}), /self.signed|unable to (get|verify)/);
});

test('EXTERNAL logs in the user that the certificate names', async () => {
  const options = { ca, ...certificate(TLS_FOLDER, 'alice'), credentials: amqplib.credentials.external() };
  const connection = await amqplib.connect(url(''), options);
  await roundTrip(connection);
  await connection.close();
});

test('EXTERNAL is not for who has no certificate', async () => {
  await assert.rejects(amqplib.connect(url(''), { ca, credentials: amqplib.credentials.external() }));
});

test('a certificate of another authority is refused', async () => {
  await assert.rejects(amqplib.connect(url('guest:guest@'), { ca, ...certificate(FOREIGN_FOLDER, 'mallory') }));
});
