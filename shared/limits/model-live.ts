import { KiB, type Limit } from './limit.ts';

/** What live traffic says of revisions: copies of it for those that answer nobody yet, and counts of all. */
export const modelLiveLimits = {
  greyDisagreement: {
    value: 0.1,
    unit: 'ratio',
    by: 'functions',
    why: 'Share of words in which mirrored answers may differ from those that were served: revisions of equal quality stay below it, and one that is further away is for people to look at.',
  },
  greyRevisions: {
    value: 4,
    unit: 'count',
    by: 'functions',
    why: 'Revisions of a model that get copies of its traffic at once.',
  },
  mirrorShare: {
    value: 0.1,
    unit: 'ratio',
    by: 'functions',
    why: 'Share of the requests of which grey revisions get a copy, unless the settings say otherwise: 200 of them come together quickly, and a pool on trial is a small one.',
  },
  mirrorsAtOnce: {
    value: 4,
    unit: 'count',
    by: 'edge',
    why: 'Copies that an isolate sends at once, each of at most heldBodyBytes: beyond that there are none.',
  },
  mirrorMs: {
    value: 30_000,
    unit: 'ms',
    by: 'edge',
    why: 'How long a copy may take, for whose answer nobody waits.',
  },
  mirrorTextBytes: {
    value: 16 * KiB,
    unit: 'byte',
    by: 'edge',
    why: 'Transcript that goes along with a copy, in the head of one record: 15 minutes of speech.',
  },
  mirrorWords: {
    value: 2_000,
    unit: 'count',
    by: 'agent',
    why: 'Words of each side that are compared: their product is what it costs, some ten milliseconds.',
  },
  liveReportSeconds: {
    value: 5,
    unit: 's',
    by: 'agent',
    why: 'How often an agent tells what became of its streams: a revision that breaks is caught within half a minute.',
  },
  liveQuietReports: {
    value: 12,
    unit: 'count',
    by: 'agent',
    why: 'Reports without news that are left out before one is told all the same: it says each minute which revisions are where.',
  },
  liveHereSeconds: {
    value: 180,
    unit: 's',
    by: 'functions',
    why: 'An agent that was not heard of in three of those has its revisions no more, for all that is known.',
  },
  liveSpeechSeconds: {
    value: 0.5,
    unit: 's',
    by: 'agent',
    why: 'Speech in which a word should have been heard: of less, a cough or a door, nobody expects one.',
  },
  mirrorDelayMs: {
    value: 50,
    unit: 'ms',
    by: 'edge',
    why: 'A copy waits so long after the served answer was there: the caller comes first.',
  },
  liveReportRevisions: {
    value: 32,
    unit: 'count',
    by: 'agent',
    why: 'Revisions of one report: those an agent serves, and has served since it started. The oldest are left out.',
  },
  liveReportBytes: { value: 96 * KiB, unit: 'byte', by: 'functions', why: 'A report of that many revisions.' },
  liveReportMs: {
    value: 10_000,
    unit: 'ms',
    by: 'agent',
    why: 'A report is tried again with the next one: a cold start takes seconds.',
  },
  liveAgents: {
    value: 90,
    unit: 'count',
    by: 'functions',
    why: 'Agents of a model whose counts are taken in one transaction of the table, which has room for 100 rows.',
  },
  liveQuietSeconds: {
    value: 86_400,
    unit: 's',
    by: 'functions',
    why: 'A revision that had no stream for a day is not listed any more: what it was like is of another traffic.',
  },
  liveSettleSeconds: {
    value: 15,
    unit: 's',
    by: 'functions',
    why: 'After a revision was moved its streams count only when every edge knows and every agent has told what was before.',
  },
  liveBaseline: {
    value: 1_000,
    unit: 'count',
    by: 'functions',
    why: 'Streams of the revision before that say what is slow: of fewer the 95th percentile is not known well enough to tell slow ones apart.',
  },
  liveQuantile: {
    value: 0.95,
    unit: 'ratio',
    by: 'functions',
    why: 'What is slower than that share of the revision before is slow: further out there are too few streams to judge by.',
  },
  liveWindowSeconds: { value: 10, unit: 's', by: 'functions', why: 'Least length of a window of live traffic.' },
  liveWindowStreams: {
    value: 50,
    unit: 'count',
    by: 'functions',
    why: 'Least streams of a window: its 95th percentile is then not the slowest of all.',
  },
  liveWindows: {
    value: 12,
    unit: 'count',
    by: 'functions',
    why: 'Windows that are kept of a revision: two minutes at least.',
  },
} as const satisfies Record<string, Limit>;
