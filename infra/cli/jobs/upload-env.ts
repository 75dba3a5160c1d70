import { pauseBefore, printLine } from '../environment.ts';
import { journalFolder } from './upload-journal.ts';

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
  pause: pauseBefore,
  folder: journalFolder(process.env),
  print: printLine,
});
