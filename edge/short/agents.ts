import {
  type AgentMemory,
  finishedOne,
  forgetIdle,
  type Outcome,
  type RouteMemory,
  startedOne,
} from '../../shared/pool/memory.ts';

/** What this isolate remembers of agents. Plain data, changed in place; lost with it, and never more than a hint. */
const agents = new Map<string, AgentMemory>();

export const knownAgents: RouteMemory = agents;

/** A request goes to an agent. One `agentFinished` follows. */
export function agentStarted(agent: string): void {
  agents.set(agent, startedOne(agents.get(agent)));
}

/** As `finished` of shared/pool/memory has it. */
export function agentFinished(agent: string, outcome: Outcome, ms: number, now: number): void {
  agents.set(agent, finishedOne(agents.get(agent), outcome, ms, now));
  forgetIdle(agents, now);
}
