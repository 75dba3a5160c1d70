import { KiB, type Limit } from './limit.ts';

/** Judging revisions, and what is kept of them. */
export const modelLimits = {
  qualitySpeakers: {
    value: 100,
    unit: 'count',
    by: 'functions',
    why: 'Speakers of a test set: with 50 an equal revision passes three times in four only, since speakers differ more than revisions.',
  },
  qualityUtterances: { value: 20, unit: 'count', by: 'functions', why: 'Utterances of each speaker in a test set.' },
  qualityMargin: {
    value: 0.1,
    unit: 'ratio',
    by: 'functions',
    why: 'How much worse a revision may be in word errors, relative to the one before: less cannot be told from noise with 2,000 utterances.',
  },
  qualityMarginFloor: {
    value: 0.002,
    unit: 'ratio',
    by: 'functions',
    why: 'The same of all words, where the one before makes hardly any error: a tenth of nothing would be a margin that nobody passes.',
  },
  qualityResamples: {
    value: 1_000,
    unit: 'count',
    by: 'functions',
    why: 'Resamples of a bootstrap: the 2.5 % in the tail are then 25 of them.',
  },
  qualityTail: {
    value: 0.025,
    unit: 'ratio',
    by: 'functions',
    why: 'Tail of the bound that decides: at 5 % the percentile bootstrap lets through 7 to 11 % of what it should not.',
  },
  greyStreams: {
    value: 200,
    unit: 'count',
    by: 'functions',
    why: 'Mirrored streams before anybody is served by a revision.',
  },
  canaryStreams: {
    value: 300,
    unit: 'count',
    by: 'functions',
    why: 'Streams that a revision serves at each share before it gets the next: the first sight of a load that it has not had.',
  },
  canaryStepSeconds: {
    value: 86_400,
    unit: 's',
    by: 'functions',
    why: 'After a day at one share without a verdict a person is asked: traffic repeats itself each day.',
  },
  canaryAlpha: {
    value: 0.02,
    unit: 'ratio',
    by: 'functions',
    why: 'How often a revision that is no worse may be stopped, however often one looks, over all metrics together.',
  },
  canaryBeta: {
    value: 0.05,
    unit: 'ratio',
    by: 'functions',
    why: 'How often a revision with half as many bad streams again may be let through, however often one looks.',
  },
  modelFiles: {
    value: 1_000,
    unit: 'count',
    by: 'functions',
    why: 'Files or shards that a signature may list: its bundle stays one row of the table.',
  },
  modelBundleBytes: {
    value: 64 * KiB,
    unit: 'byte',
    by: 'functions',
    why: 'A signature bundle as it is sent and kept: a row of the table takes 120,000 characters.',
  },
} as const satisfies Record<string, Limit>;
