import { KiB, type Limit, MiB } from './limit.ts';

/** Text projects: what is made of text. */
export const projectLimits = {
  projectDocuments: {
    value: 32,
    unit: 'count',
    by: 'edge',
    why: 'Chapters of one project: three rows each, and all of them begin in one transaction, which takes 100.',
  },
  projectBodyBytes: {
    value: 2 * MiB,
    unit: 'byte',
    by: 'edge',
    why: 'A project with its text, held while it is read and sealed; a long novel is half of it. Sealed files go elsewhere.',
  },
  projectDocumentBytes: {
    value: 512 * KiB,
    unit: 'byte',
    by: 'agent',
    why: 'Text of one document as it is read, JSON around it included; five hours of speech.',
  },
  projectSegments: {
    value: 1_000,
    unit: 'count',
    by: 'agent',
    why: 'Segments of one document: a job each, whose numbers have three digits, and which are one list in one row.',
  },
  projectSegmentChars: {
    value: 400,
    unit: 'character',
    by: 'agent',
    why: 'Longest segment: half a minute of speech, which a light voice makes at once; longer sentences are cut at a pause.',
  },
  projectSegmentSeconds: {
    value: 120,
    unit: 's',
    by: 'agent',
    why: 'Sound of one segment, spoken at half the speed; more of it is a voice that does not stop.',
  },
  projectGapMs: {
    value: 10_000,
    unit: 'ms',
    by: 'edge',
    why: 'Longest silence between two segments or blocks: who wants more of it can have another document.',
  },
  projectJobsWanted: {
    value: 40,
    unit: 'count',
    by: 'functions',
    why: 'Jobs of one document that wait or are queued: as many may end as begin in one transaction, which takes 100.',
  },
  projectEditBytes: {
    value: 8 * KiB,
    unit: 'byte',
    by: 'functions',
    why: 'A sealed segment: projectSegmentChars of four bytes, its head and its records, with room for longer names.',
  },
  projectEditTries: {
    value: 4,
    unit: 'count',
    by: 'edge',
    why: 'How often an edit that lost to another of the same document is sealed again before its caller is told.',
  },
  projectListRows: {
    value: 20,
    unit: 'count',
    by: 'functions',
    why: 'Projects of one page of a list, with their documents.',
  },
  projectLightMs: {
    value: 2 * 60_000,
    unit: 'ms',
    by: 'functions',
    why: 'A job that no CPU pool has taken for so long is put where every pool of the zone takes jobs.',
  },
  lightJobs: {
    value: 8,
    unit: 'count',
    by: 'agent',
    why: 'Light jobs of one agent at once: a segment is a few hundred kilobytes, and most of its time is storage and queue.',
  },
  projectManifestBytes: {
    value: 4 * MiB,
    unit: 'byte',
    by: 'agent',
    why: 'A manifest of projectSegments segments with their texts: 1,000 times 400 characters of four bytes and 400 more.',
  },
  projectWritesAtOnce: {
    value: 8,
    unit: 'count',
    by: 'agent',
    why: 'Segments that are written together: a chapter of 1,000 takes seconds, and storage sees a small burst.',
  },
} as const satisfies Record<string, Limit>;
