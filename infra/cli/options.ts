// The table of options. A command names those it takes; parser and help read the same rows.

export interface Option {
  /** Placeholder of its value in the help; absent for a switch. */
  readonly value?: string;
  readonly short?: string;
  readonly default?: string;
  /** Repeatable: only for commands that build models. */
  readonly many?: true;
  readonly means: string;
}

export const options = {
  edge: { value: 'URL', means: 'address of the edge; default AURICLE_EDGE, else the stack of --state' },
  token: { value: 'T', means: 'access token; default AURICLE_TOKEN, else the one of the stack of --state' },
  state: {
    value: 'DIR',
    means: 'state folder of a local stack: its address, its token, its signers; default .auricle',
  },
  json: { means: 'prints the answer as JSON; an error is JSON on stderr' },
  help: { short: 'h', means: 'explains the command and its options' },
  version: { means: 'prints the version' },
  follow: { means: 'prints new lines until Ctrl-C' },
  model: { value: 'NAME', means: 'model to use; default reference-en' },
  language: { value: 'TAG', means: 'language that is spoken, as BCP 47' },
  format: { value: 'FORMAT', means: 'form of the transcript: json, text, srt or vtt' },
  zone: { value: 'ZONE', means: 'residency zone; default the home of the token' },
  callback: { value: 'URL', means: 'https address that is notified of the end' },
  keepDays: { value: 'N', means: 'days that sealed audio is kept after the end, for uploads rerun; default 0' },
  plain: { means: 'sends the content unsealed, where the token allows it' },
  wait: { means: 'waits for the end' },
  live: { means: 'streams a WAV file and shows the words as they come' },
  pace: { value: 'PACE', default: 'realtime', means: 'speed of live audio: realtime, or max' },
  audio: { value: 'FILE', means: 'recording to send, with --stream a WAV file' },
  expect: { value: 'TEXT', means: 'words that each transcript must hold; default FILE.txt beside the recording' },
  parallel: { value: 'N', default: '32', means: 'callers or streams at once' },
  iterations: { value: 'N', default: '64', means: 'measured requests of each caller' },
  warmUp: { value: 'N', default: '1', means: 'requests of each caller, or passes of each stream, before measuring' },
  stream: { means: 'measures live streams in place of recordings' },
  seconds: { value: 'N', default: '60', means: 'measured seconds of audio of each stream' },
  voice: { value: 'V', means: 'voice of the model' },
  rate: { value: 'R', means: 'speed of speech, 1 is normal' },
  out: { value: 'DIR', means: 'folder that the files are written to' },
  force: { short: 'f', means: 'overwrites what this tool wrote before' },
  year: { value: 'YEAR', means: 'year of the log; default the newest' },
  type: { value: 'TYPE', means: 'only entries of this type' },
  key: { value: 'VKEY', means: 'verifier key of the log; default the one that was seen first' },
  policy: { value: 'FILE', means: 'keys of logs and witnesses to believe, C2SP tlog-policy' },
  head: { value: 'FILE', means: 'checkpoint that the bundle must extend' },
  after: { value: 'N', means: 'number of the last entry before the bundle' },
  receipt: { value: 'FILE', means: 'receipt of one entry, .tlog-proof' },
  entry: { value: 'FILE', means: 'that entry, byte for byte; default the receipt with .json' },
  purpose: { value: 'TEXT', means: 'reason for the export; it goes on record' },
  from: { value: 'TIME', means: 'entries from then on' },
  to: { value: 'TIME', means: 'entries before then' },
  profile: { value: 'P', means: 'what is disclosed: full, auditor-min, or fields:NAME,NAME' },
  request: { value: 'ID', means: 'entries of this request' },
  subject: { value: 'S', means: '"sub" of the tokens that the caller held, or its commitment, c1:…' },
  commitment: { value: 'C', means: 'commitment of the subject, c1:…' },
  day: { value: 'DAY', means: 'entries of this day, as 2026-11-22' },
  basis: { value: 'B', means: 'rule or case that asks for it; it stands in the log' },
  reason: { value: 'WHY', means: 'reason, in words; it goes on record' },
  id: { value: 'UUID', means: 'id of the hold, so that a repetition sets none twice' },
  as: { value: 'NAME', means: 'signs with this signer of the local stack: author, reviewer, approver, quantiser' },
  evidence: { value: 'FILE', means: 'evidence for the gate, as model measure writes it' },
  at: { value: 'TIME', means: 'as of then; ISO 8601, or ms since 1970' },
  sla: { value: 'WHAT=N,…', means: 'promise of the revision: latencyMs, memoryBytes, wordErrors' },
  tenant: { value: 'TENANT', means: 'tenant that the name is for; default the whole fleet' },
  zones: { value: 'ZONE,…', default: 'eu', means: 'residency zones of the environment' },
  pools: { value: 'NAME=ZONE,…', means: 'pools and their zones; default pool-ZONE in each zone' },
  domain: { value: 'HOST', means: 'host of the edge; agents are below pools.HOST' },
  month: { value: 'MONTH', means: 'month in UTC, as 2026-11; default the current one' },
  alias: { value: 'NAME', means: 'alias to move; default stable' },
} as const satisfies Readonly<Record<string, Option>>;

type Options = typeof options;
export type OptionName = keyof Options;

/** Value of each option: a switch is a boolean, an option with a default always has a value. */
export type OptionValues = {
  readonly [N in OptionName]: Options[N] extends { readonly default: string }
    ? string
    : Options[N] extends { readonly value: string }
      ? string | undefined
      : boolean;
};

/** A parsed command line. */
export interface Arguments extends Omit<OptionValues, 'edge' | 'model' | 'state'> {
  readonly verb: string | undefined;
  /** Operands after the command's first word. */
  readonly operands: readonly string[];
  /** URL without a trailing slash. */
  readonly edge: string;
  /** The named model, or the command's default. */
  readonly model: string;
  /** The named model only. */
  readonly onlyModel: string | undefined;
  /** State folder of the local stack. */
  readonly state: string;
  /** `edge` is the address of the local stack: its token may be sent there. */
  readonly isLocalEdge: boolean;
}

/** Options of every command that calls an edge. */
export const edgeOptions = ['edge', 'token', 'state'] as const satisfies readonly OptionName[];
export const commonOptions = ['json', 'help'] as const satisfies readonly OptionName[];

/** Converts `warmUp` to `--warm-up`. */
export const flagOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
