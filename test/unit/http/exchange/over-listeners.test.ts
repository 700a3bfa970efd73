import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { watchForReset } from '../../../../src/http/exchange/over-listeners.js';

class Connection extends EventEmitter {
  bytesRead = 100;
}

function watched() {
  const connection = new Connection();
  let resets = 0;
  const watch = () => watchForReset(connection as unknown as Socket, () => resets++);
  watch();
  return { connection, watch, resets: () => resets };
}

afterEach(() => {
  jest.useRealTimers();
});

test('a reset before the client sent anything more is told, once', () => {
  const { connection, watch, resets } = watched();
  watch();
  connection.emit('close', true);
  expect(resets()).toBe(1);
});

test.each([
  ['the connection ended in order', false, 100, 0],
  ['the client had sent more', true, 101, 0],
  ['the reply is long ago', true, 100, 10_001],
])('nothing is told when %s', (_name, hadError, bytesRead, ms) => {
  jest.useFakeTimers();
  const { connection, resets } = watched();
  connection.bytesRead = bytesRead;
  jest.advanceTimersByTime(ms);
  connection.emit('close', hadError);
  expect(resets()).toBe(0);
});

test('a kept connection has one listener, however many replies it has had', () => {
  const { connection, watch } = watched();
  for (let i = 0; i < 100; i++) watch();
  expect(connection.listenerCount('close')).toBe(1);
});
