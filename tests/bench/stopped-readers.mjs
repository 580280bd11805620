/** Opens connections that each read `bytes` of a response and then stop. Prints a line when all have stopped. */

import net from 'node:net';

const [host, port, head, bytes, count] = process.argv.slice(2);
let reading = Number(count);
for (let opened = 0; opened < Number(count); opened++) {
  let received = 0;
  const socket = net.connect(Number(port), host, () => socket.write(head));
  socket.on('data', (chunk) => {
    received += chunk.length;
    if (received < Number(bytes) || socket.isPaused()) return;
    socket.pause();
    if (--reading === 0) console.log('stopped');
  });
  socket.on('close', () => {
    console.error(`closed after ${received} bytes`);
    process.exit(1);
  });
}
// Connections that are paused do not keep Bun running.
setInterval(() => {}, 60_000);
