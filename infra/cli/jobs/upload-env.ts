import { journalFolder } from './upload-journal.ts';

/** Longest pause between two tries. */
const UPLOAD_PAUSE_MS = 15_000;

/** The environment of an upload, which tests replace. */
export interface UploadEnv {
  readonly fetch: typeof fetch;
  readonly now: () => number;
  readonly pause: (attempt: number) => Promise<void>;
  readonly folder: string;
  readonly print: (line: string) => void;
}

export const realEnv = (): UploadEnv => ({
  fetch,
  now: Date.now,
  pause: (attempt) =>
    new Promise((settle) =>
      setTimeout(settle, Math.min(UPLOAD_PAUSE_MS, 250 * 2 ** attempt) * (0.5 + Math.random() / 2)),
    ),
  folder: journalFolder(process.env),
  print: (line) => void process.stderr.write(`${line}\n`),
});
