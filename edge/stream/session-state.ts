/**
 * State of a session. `waiting`: the client has not started it. `opening`: the first agent is being searched.
 * `live`. `moving`: the agent was lost, or does not serve the detected language; another one is being
 * searched. `detached`: the client is disconnected and may resume. `adrift`: both. `finishing`: the input has
 * ended. `closed`.
 */
export const states = ['waiting', 'opening', 'live', 'moving', 'detached', 'adrift', 'finishing', 'closed'] as const;
export type State = (typeof states)[number];

/**
 * `start`: the client starts. `ready`, `lost`: of an agent. `drop`, `back`: of the client's connection. `end`: the input
 * ends, by the client or by a limit. `done`: the client has every event. `refuse`: the session cannot go on. `gone`: the
 * client left or may not resume.
 */
export const events = ['start', 'ready', 'lost', 'drop', 'back', 'end', 'done', 'refuse', 'gone'] as const;
export type StateEvent = (typeof events)[number];

type Row = Readonly<Partial<Record<StateEvent, State>>>;
const ending: Row = { refuse: 'closed', gone: 'closed' };

/** Every transition; the table of PROTOCOL.md §3. */
export const transitions: Readonly<Record<State, Row>> = {
  waiting: { start: 'opening', drop: 'closed', end: 'closed', ...ending },
  opening: { ready: 'live', drop: 'adrift', end: 'finishing', ...ending },
  live: { lost: 'moving', drop: 'detached', end: 'finishing', ...ending },
  moving: { ready: 'live', drop: 'adrift', end: 'finishing', ...ending },
  detached: { lost: 'adrift', back: 'live', end: 'finishing', ...ending },
  adrift: { ready: 'detached', back: 'moving', end: 'finishing', ...ending },
  finishing: {
    ready: 'finishing',
    lost: 'finishing',
    drop: 'finishing',
    back: 'finishing',
    done: 'closed',
    ...ending,
  },
  closed: {},
};

/** Returns the state after an event, or undefined when the event has no effect. */
export const after = (state: State, event: StateEvent): State | undefined => transitions[state][event];
