// A client of a live protocol, and agents for it.
import { ask } from '../fake/network.ts';
import type { Habits } from '../fake/stream-agent.ts';
import { SocketClient } from './socket-client.ts';
import { modelName, startListener as startNamed } from './stream-listener.ts';

/** Starts a live agent for a model of its own. */
export const startListener = (habits: Partial<Habits> = {}) => startNamed(modelName(), habits);

/** The same, ready only once it is let: what comes before has to be kept. */
export async function startLateListener() {
  let isLet = false;
  const before: Habits['before'] = (agentStream, message) => {
    if ('kind' in message || message.type !== 'open') return false;
    // Only in its own turn may the agent speak to its socket.
    const look = () => void (isLet ? agentStream.ready(message.model) : setTimeout(look, 1));
    look();
    return false;
  };
  const listener = await startListener({ ready: false, before });
  return {
    ...listener,
    letReady: () => {
      isLet = true;
    },
  };
}

export class LiveClient extends SocketClient {
  /** Upgrades; throws with the answer when there is no socket. */
  static async connect(path: string, headers: Record<string, string>): Promise<LiveClient> {
    const answer = await ask(path, { headers: { upgrade: 'websocket', ...headers } });
    if (!answer.webSocket) throw new Error(`${answer.status} ${await answer.text()}`);
    return new LiveClient(answer);
  }
}
