import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { passTime, startAgent } from '../fake/network.ts';
import { type AgentStream, eventually, type Habits, habitsOf, listen } from '../fake/stream-agent.ts';
import type { StreamClient } from './stream-client.ts';

/** Rosters outlive a test, so every test has a model that no other agent serves. */
export const modelName = () => `live-${crypto.randomUUID().slice(0, 8)}`;

/** Starts a live agent, by default for a model of its own. */
export async function startListener(name = modelName(), change: Partial<Habits> = {}) {
  const agent = await startAgent(name, { live: true });
  const habits = habitsOf(change);
  return { name, agent, habits, agentStreams: listen(agent, habits) };
}

/** Over the silence of an agent that is lost, but a session looks twice before it believes that. */
const STEP_MS = 10_000;

/** Time passes while agent and client, if there is one, say now and then that they are there. */
export async function passQuietly(
  ms: number,
  agentStream: AgentStream | undefined,
  client?: StreamClient,
): Promise<void> {
  for (let left = ms; left > 0; left -= STEP_MS) {
    passTime(Math.min(left, STEP_MS));
    agentStream?.send({ type: 'keepalive' });
    const pongs = client?.all('pong').length ?? 0;
    client?.send({ type: 'ping' });
    await eventually(() => agentStream?.idle ?? true);
    await eventually(() => !client || client.all('pong').length > pongs);
  }
}

/**
 * The object of a session loses all it has, as when its process ends. Its sockets break, and the runtime says so on
 * standard error.
 */
export async function forgetSession(name: string): Promise<void> {
  const stub = env.STREAM.getByName(name);
  const abort = (_: unknown, state: object) => (state as { abort(why: string): void }).abort('the test says so');
  await runInDurableObject(stub, abort).catch(() => {});
}
