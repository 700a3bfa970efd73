import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { HttpConnection } from '../http-connection.mjs';

/** It stands for clients elsewhere: where the cores do not suffice, it comes after the servers. */
setPriority(10);

const [port, connections, file] = process.argv.slice(2);
const request = readFileSync(file);
const replies = new Map();

/** The same request without end, whatever comes back. */
async function oneConnection() {
  for (;;) {
    const connection = await HttpConnection.open(Number(port));
    await new Promise((resolve) => {
      const send = () => connection.send(request, receive, resolve);
      const receive = (status) => {
        replies.set(status, (replies.get(status) ?? 0) + 1);
        send();
      };
      send();
    });
  }
}

process.once('SIGTERM', () => {
  console.log(JSON.stringify(Object.fromEntries(replies)));
  process.exit();
});
for (let i = 0; i < Number(connections); i++) oneConnection();
console.log('listening on 1');
