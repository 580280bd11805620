/** A connection over WebDriver BiDi. @see https://www.w3.org/TR/webdriver-bidi/ */

export type Bidi = Awaited<ReturnType<typeof connectBidi>>;

export async function connectBidi(address: string) {
  const socket = new WebSocket(address);
  const inFlight = new Map<number, PromiseWithResolvers<unknown>>();
  const failAll = () => {
    for (const { reject } of inFlight.values()) reject(new Error('The browser has closed the connection'));
  };
  let commands = 0;

  socket.addEventListener('message', ({ data }) => {
    const { id, type, result, error, message } = JSON.parse(String(data));
    const command = inFlight.get(id);
    inFlight.delete(id);
    if (type === 'success') command?.resolve(result);
    else command?.reject(new Error(`${error}: ${message}`));
  });
  socket.addEventListener('close', failAll);

  const send = (method: string, params: object): Promise<unknown> => {
    const command = Promise.withResolvers<unknown>();
    commands += 1;
    inFlight.set(commands, command);
    socket.send(JSON.stringify({ id: commands, method, params }));
    return command.promise;
  };

  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.addEventListener('open', () => resolve());
  socket.addEventListener('error', () => reject(new Error(`No connection to ${address}`)));
  await promise;
  await send('session.new', { capabilities: {} });
  return {
    /** Sends a command, and returns its result. */
    send,
    [Symbol.dispose]: () => socket.close(),
  };
}
