import { type AgentMemory, finishedOne, forgetIdle, type Outcome, type RouteMemory, startedOne } from './memory.ts';

/** Latencies and failures of agents as this isolate saw them. Lost with the isolate, and never more than a hint. */
const agents = new Map<string, AgentMemory>();

export const knownAgents: RouteMemory = agents;

/** Counts a request that goes to an agent. One `agentFinished` follows. */
export function agentStarted(agent: string): void {
  agents.set(agent, startedOne(agents.get(agent)));
}

/** Records how the request ended, as `finishedOne` says. */
export function agentFinished(agent: string, outcome: Outcome, ms: number, now: number): void {
  agents.set(agent, finishedOne(agents.get(agent), { outcome, ms, now }));
  forgetIdle(agents, now);
}
