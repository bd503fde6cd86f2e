import { once } from 'node:events';
import { connect } from 'node:net';
import { LOOPBACK } from '../loopback.js';

const START_ATTEMPTS = 5;

class PortTakenError extends Error {}

/** Returns the error of a server that ended while it was starting. */
export const endedEarly = (port: number, said: string): Error => {
  const message = `the ZooKeeper server on port ${port} ended before it was ready:\n${said}`;
  return /address already in use/i.test(said) ? new PortTakenError(message) : new Error(message);
};

/** Runs `start` again, with other ports, after another program took one of its ports. */
export const onFreePorts = async <T>(start: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof PortTakenError) || attempt === START_ATTEMPTS) throw error;
    }
  }
};

/** Resolves when a port accepts a connection; rejects when it does not. */
export const accepts = async (port: number): Promise<void> => {
  const socket = connect({ host: LOOPBACK, port });
  try {
    await once(socket, 'connect');
  } finally {
    socket.destroy();
  }
};
