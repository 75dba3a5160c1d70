import { KiB, type Limit, MiB } from './limit.ts';

/** Jobs of uploads in an agent. */
export const batchLimits = {
  batchJobs: {
    value: 2,
    unit: 'count',
    by: 'agent',
    why: 'Jobs of one agent at once: while one waits for storage or decodes, the other keeps the engine at work.',
  },
  jobWaitSeconds: {
    value: 20,
    unit: 's',
    by: 'agent',
    why: 'How long a question for jobs stays open: the longest that SQS takes, so that idle agents cost least.',
  },
  jobTurnSeconds: {
    value: 1,
    unit: 's',
    by: 'agent',
    why: 'The same of an agent with several models, which asks the queue of each in turn; about a dollar a month.',
  },
  queueMissingMs: {
    value: 3_000,
    unit: 'ms',
    by: 'agent',
    why: 'The queue of a model is made with its first job: how long that job waits at most for agents to find it.',
  },
  jobPauseMs: {
    value: 250,
    unit: 'ms',
    by: 'agent',
    why: 'How often a busy agent looks whether it has room for a job again.',
  },
  jobRetrySeconds: {
    value: 5,
    unit: 's',
    by: 'agent',
    why: 'A job that failed comes back after this, four times as long each time: what is lost is often back by then.',
  },
  jobRetryMaxSeconds: {
    value: 45,
    unit: 's',
    by: 'agent',
    why: 'Longest of those pauses: less than jobSilentMs, so that functions can tell a job that waits from a lost one.',
  },
  jobMs: {
    value: 50 * 60_000,
    unit: 'ms',
    by: 'agent',
    why: 'Longest work on one job: less than the life of its addresses, and far more than twelve hours take to cut.',
  },
  jobWantedMs: {
    value: 10_000,
    unit: 'ms',
    by: 'agent',
    why: 'How often an agent asks whether its job is still wanted: a cancelled upload holds a place so much longer.',
  },
  queueFailedMs: {
    value: 15_000,
    unit: 'ms',
    by: 'agent',
    why: 'Longest pause between attempts at a queue that does not answer.',
  },
  jobOpenMs: {
    value: 15_000,
    unit: 'ms',
    by: 'agent',
    why: 'The back office reads one row and signs a few addresses; a cold start takes seconds.',
  },
  jobAnswerBytes: {
    value: MiB,
    unit: 'byte',
    by: 'agent',
    why: 'Addresses of 144 pieces, at most 2 KiB each, and the facts of an upload.',
  },
  blobTries: {
    value: 4,
    unit: 'count',
    by: 'agent',
    why: 'Attempts at one blob before the whole job is left for later; a read goes on where it broke.',
  },
  blobRetryMs: { value: 200, unit: 'ms', by: 'agent', why: 'First pause between them; it doubles.' },
  blobIdleMs: {
    value: 30_000,
    unit: 'ms',
    by: 'agent',
    why: 'Storage that sends or takes nothing for so long is as good as gone.',
  },
  planBytes: {
    value: 64 * KiB,
    unit: 'byte',
    by: 'agent',
    why: 'A plan: two numbers for each piece.',
  },
  resultLineBytes: {
    value: 64 * KiB,
    unit: 'byte',
    by: 'agent',
    why: 'One segment of a result, which fits into an event of an answer.',
  },
  transcriptBytes: {
    value: 64 * MiB,
    unit: 'byte',
    by: 'agent',
    why: 'Twelve hours of fast speech: 200,000 words of about 100 bytes, three times over.',
  },
} as const satisfies Record<string, Limit>;
