/**
 * Where a session stands. `waiting`: the client has not said what it wants. `opening`: its first agent is being looked
 * for. `live`. `moving`: the agent was lost, another one is being looked for. `detached`: the client dropped, and may
 * come back. `adrift`: both. `finishing`: the client has said everything. `closed`.
 */
export const states = ['waiting', 'opening', 'live', 'moving', 'detached', 'adrift', 'finishing', 'closed'] as const;
export type State = (typeof states)[number];

/**
 * `start`: the client said what it wants. `ready`, `lost`: an agent. `drop`, `back`: the client. `end`: there will be no
 * more audio, by the client's word or since the session is as long as it may be. `done`: everything was said. `refuse`: it cannot
 * go on. `gone`: the client did not come back, or may not.
 */
export const events = ['start', 'ready', 'lost', 'drop', 'back', 'end', 'done', 'refuse', 'gone'] as const;
export type StateEvent = (typeof events)[number];

type Row = Readonly<Partial<Record<StateEvent, State>>>;
const over: Row = { refuse: 'closed', gone: 'closed' };

/** Every change of state there is; the table in PROTOCOL.md is this one, and a test compares them. */
export const transitions: Readonly<Record<State, Row>> = {
  waiting: { start: 'opening', drop: 'closed', end: 'closed', ...over },
  opening: { ready: 'live', drop: 'adrift', end: 'finishing', ...over },
  live: { lost: 'moving', drop: 'detached', end: 'finishing', ...over },
  moving: { ready: 'live', drop: 'adrift', end: 'finishing', ...over },
  detached: { lost: 'adrift', back: 'live', end: 'finishing', ...over },
  adrift: { ready: 'detached', back: 'moving', end: 'finishing', ...over },
  finishing: {
    ready: 'finishing',
    lost: 'finishing',
    drop: 'finishing',
    back: 'finishing',
    done: 'closed',
    ...over,
  },
  closed: {},
};

/** The state after an event; `undefined` when the event means nothing there. */
export const after = (state: State, event: StateEvent): State | undefined => transitions[state][event];
