import { parseArgs } from 'node:util';
import { argumentProblem } from '../../shared/argument-problem.ts';

export const DEFAULT_EDGE = 'http://127.0.0.1:8787';

/** Options of every verb; they may stand before or after it. */
export type Arguments = {
  verb: string | undefined;
  operands: string[];
  edge: string;
  token: string | undefined;
  json: boolean;
  help: boolean;
  model: string;
  language: string | undefined;
  format: string | undefined;
  /** Of `load`, as written; the verb says what they may be. */
  audio: string | undefined;
  parallel: string;
  iterations: string;
  warmUp: string;
  /** Live streams: of `load`, and of `transcribe`. */
  stream: boolean;
  live: boolean;
  dialect: string;
  pace: string;
  seconds: string;
  /** Of `upload` and `replay`. */
  plain: boolean;
  wait: boolean;
  zone: string | undefined;
  year: string | undefined;
  callback: string | undefined;
  /** Of `audit`: the key of the log. */
  key: string | undefined;
  /** Of `model`: whose key of the local stack, where to, with what, as of when and why. */
  as: string | undefined;
  to: string | undefined;
  evidence: string | undefined;
  at: string | undefined;
  reason: string | undefined;
  /** What is promised of a revision: `latencyMs=100,…`. */
  sla: string | undefined;
  alias: string | undefined;
  /** Of `audit export`: the range, what for, what is disclosed; `to` is that of `model`. Of `audit verify`: whom to believe. */
  from: string | undefined;
  purpose: string | undefined;
  profile: string | undefined;
  policy: string | undefined;
  head: string | undefined;
  /** Of `audit verify`: a receipt, and its entry. */
  receipt: string | undefined;
  entry: string | undefined;
  /** Of `audit tail` and `audit search`: of entries. */
  type: string | undefined;
  /** Of `audit erase`, `hold` and `search`: whom, why, when; a model that was named, and no default. */
  subject: string | undefined;
  commitment: string | undefined;
  basis: string | undefined;
  id: string | undefined;
  request: string | undefined;
  day: string | undefined;
  after: string | undefined;
  onlyModel: string | undefined;
  /** Of `project`, and of `model export`, which overwrites nothing unless it is forced. */
  out: string | undefined;
  force: boolean;
  voice: string | undefined;
  rate: string | undefined;
};

export function readArguments(given: string[]): Arguments | { problem: string } {
  try {
    const { values, positionals } = parseArgs({
      args: given,
      allowPositionals: true,
      options: {
        edge: { type: 'string', default: DEFAULT_EDGE },
        token: { type: 'string' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        model: { type: 'string' },
        language: { type: 'string' },
        format: { type: 'string' },
        audio: { type: 'string' },
        parallel: { type: 'string', default: '32' },
        iterations: { type: 'string', default: '64' },
        'warm-up': { type: 'string', default: '1' },
        stream: { type: 'boolean', default: false },
        live: { type: 'boolean', default: false },
        dialect: { type: 'string', default: 'auricle' },
        pace: { type: 'string', default: 'realtime' },
        seconds: { type: 'string', default: '60' },
        plain: { type: 'boolean', default: false },
        wait: { type: 'boolean', default: false },
        zone: { type: 'string' },
        year: { type: 'string' },
        callback: { type: 'string' },
        key: { type: 'string' },
        as: { type: 'string' },
        to: { type: 'string' },
        evidence: { type: 'string' },
        at: { type: 'string' },
        reason: { type: 'string' },
        sla: { type: 'string' },
        alias: { type: 'string' },
        from: { type: 'string' },
        purpose: { type: 'string' },
        profile: { type: 'string' },
        policy: { type: 'string' },
        head: { type: 'string' },
        receipt: { type: 'string' },
        entry: { type: 'string' },
        type: { type: 'string' },
        subject: { type: 'string' },
        commitment: { type: 'string' },
        basis: { type: 'string' },
        id: { type: 'string' },
        request: { type: 'string' },
        day: { type: 'string' },
        after: { type: 'string' },
        out: { type: 'string' },
        force: { type: 'boolean', short: 'f', default: false },
        voice: { type: 'string' },
        rate: { type: 'string' },
      },
    });
    const [verb, ...operands] = positionals;
    if (!URL.canParse(values.edge)) return { problem: `--edge ${values.edge} is not a URL` };
    if (!/^https?:$/.test(new URL(values.edge).protocol))
      return { problem: `--edge ${values.edge} is no address of an edge: it begins with http:// or https://` };
    return {
      verb,
      operands,
      edge: values.edge.replace(/\/+$/, ''),
      token: values.token,
      json: values.json,
      help: values.help,
      model: values.model ?? (verb === 'project' ? 'voice-en' : 'reference-en'),
      language: values.language,
      format: values.format,
      audio: values.audio,
      parallel: values.parallel,
      iterations: values.iterations,
      warmUp: values['warm-up'],
      stream: values.stream,
      live: values.live,
      dialect: values.dialect,
      pace: values.pace,
      seconds: values.seconds,
      plain: values.plain,
      wait: values.wait,
      zone: values.zone,
      year: values.year,
      callback: values.callback,
      key: values.key,
      as: values.as,
      to: values.to,
      evidence: values.evidence,
      at: values.at,
      reason: values.reason,
      sla: values.sla,
      alias: values.alias,
      from: values.from,
      purpose: values.purpose,
      profile: values.profile,
      policy: values.policy,
      head: values.head,
      receipt: values.receipt,
      entry: values.entry,
      type: values.type,
      subject: values.subject,
      commitment: values.commitment,
      basis: values.basis,
      id: values.id,
      request: values.request,
      day: values.day,
      after: values.after,
      onlyModel: values.model,
      out: values.out,
      force: values.force,
      voice: values.voice,
      rate: values.rate,
    };
  } catch (error) {
    return { problem: argumentProblem(error) };
  }
}
