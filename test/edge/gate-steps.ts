// Single steps at a gate, and a gate of the test's making that takes them one by one.

import type { AdmissionRequest } from '../../edge/ledger/allowance.ts';
import type { GateAnswer, GateStep } from '../../edge/ledger/gate-step.ts';
import type { Bindings } from '../../edge/settings.ts';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { ok } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';

type Gate = Pick<ReturnType<Bindings['GATE']['getByName']>, 'apply'>;
type Events = readonly AuditEvent[];

const one = async (gate: Gate, step: GateStep) => (await gate.apply([step]))[0] as GateAnswer;

export const take = (gate: Gate, ask: AdmissionRequest, mode: Claims['audit'], events: Events) =>
  one(gate, { kind: 'take', ask, mode, events });
export const settle = (gate: Gate, id: string, audioSeconds: number, events: Events) =>
  one(gate, { kind: 'settle', id, mode: 'buffered', audioSeconds, events });
export const record = (gate: Gate, events: Events) => one(gate, { kind: 'record', events });

/** A Gate double: handlers by kind of step. A step without a handler fails like an unreachable Gate. */
export interface FakeGate {
  readonly take?: (ask: AdmissionRequest) => Promise<GateAnswer>;
  readonly settle?: (id: string, audioSeconds: number, events: Events) => Promise<void>;
  readonly record?: (events: Events) => Promise<void>;
}

export function asGate({ take, settle, record }: FakeGate): Gate {
  const missing = () => Promise.reject(new Error('gone'));
  const act = async (step: GateStep): Promise<GateAnswer> => {
    if (step.kind === 'take') return (take ?? missing)(step.ask);
    if (step.kind === 'settle') await (settle ?? missing)(step.id, step.audioSeconds, step.events);
    if (step.kind === 'record') await (record ?? missing)(step.events);
    return ok(undefined);
  };
  return { apply: (steps) => Promise.all(steps.map(act)) };
}
