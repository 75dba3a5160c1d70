import { callerRefusals } from './refusal/caller.ts';
import { contentRefusals } from './refusal/content.ts';
import { exportRefusals } from './refusal/export.ts';
import { modelRefusals } from './refusal/model.ts';
import { outageRefusals } from './refusal/outage.ts';
import { poolRefusals } from './refusal/pool.ts';
import { privacyRefusals } from './refusal/privacy.ts';
import { projectRefusals } from './refusal/project.ts';
import { requestRefusals } from './refusal/request.ts';
import type { Row } from './refusal/row.ts';
import { streamRefusals } from './refusal/stream.ts';
import { uploadRefusals } from './refusal/upload.ts';
import { workRefusals } from './refusal/work.ts';

/** Longest estimate for retry-after: official clients ignore longer ones and retry after half a second. */
export const RETRY_AFTER_MAX_S = 60;
/** One value in a public sentence: it may quote a client's input, and a refusal is short. */
const REFUSAL_VALUE_CHARACTERS = 200;

/**
 * Every expected "no" of the system: reason → the caller's error. The reason is also the public error code. A
 * status other than 408, 429 and 5xx is never retried by the official clients; where they would retry without
 * hope, `retry: 'never'` becomes `x-should-retry: false`.
 */
export const refusals = {
  ...callerRefusals,
  ...requestRefusals,
  ...streamRefusals,
  ...contentRefusals,
  ...uploadRefusals,
  ...projectRefusals,
  ...outageRefusals,
  ...privacyRefusals,
  ...modelRefusals,
  ...poolRefusals,
  ...exportRefusals,
  ...workRefusals,
} as const satisfies Record<string, Row>;

export type Reason = keyof typeof refusals;

export interface Refusal {
  readonly reason: Reason;
  /** Values for the public sentence: names and numbers that the caller sent or may know. */
  readonly params?: Readonly<Record<string, string | number>>;
  /** Whole seconds until the condition is expected to end (`clampRetry`); absent, the row's advice is sent. */
  readonly retryAfter?: number;
  /** For our logs and the audit record only; never sent. Must hold no audio, transcript or token. */
  readonly detail?: string;
}

export function refuse(reason: Reason, params?: Refusal['params'], detail?: string): Refusal {
  return { reason, ...(params && { params }), ...(detail !== undefined && { detail }) };
}

/** Bounds the length of quoted values, so that a refusal fits any transport. */
export function shortened(refusal: Refusal): Refusal {
  const { params } = refusal;
  if (!params || Object.values(params).every((value) => String(value).length <= REFUSAL_VALUE_CHARACTERS))
    return refusal;
  const short = Object.entries(params).map(([name, value]) =>
    typeof value === 'string' ? [name, value.slice(0, REFUSAL_VALUE_CHARACTERS)] : [name, value],
  );
  return { ...refusal, params: Object.fromEntries(short) };
}

export const isReason = (value: unknown): value is Reason =>
  typeof value === 'string' && Object.hasOwn(refusals, value);

/** The sentence for the caller. A parameter that is missing stays visible as `{name}`, which a test forbids. */
export function publicText({ reason, params = {} }: Refusal): string {
  const { text, more }: Row = refusals[reason];
  const fill = (sentence: string) =>
    sentence.replace(/\{(\w+)\}/g, (whole, name: string) =>
      String(params[name] ?? whole).slice(0, REFUSAL_VALUE_CHARACTERS),
    );
  const knows =
    more !== undefined && [...more.matchAll(/\{(\w+)\}/g)].every(([, name = '']) => params[name] !== undefined);
  return knows ? `${fill(text)} ${fill(more)}` : fill(text);
}

/** An estimate in ms as whole seconds for `retry-after`: official clients take 1 to 60 and ignore anything else. */
export function clampRetry(ms: number): number {
  return Math.min(RETRY_AFTER_MAX_S, Math.max(1, Math.ceil(ms / 1_000)));
}

export interface RetryAdvice {
  /** Whole seconds for `retry-after`; `undefined` when a retry never succeeds. */
  readonly seconds: number | undefined;
  /** An automatic retry makes sense: official clients wait at most 60 s. */
  readonly automatic: boolean;
}

/** Advice on retrying: the refusal's own estimate, otherwise seconds by its row, at random so that clients spread. */
export function adviseRetry({ reason, retryAfter }: Refusal, random: number): RetryAdvice {
  const advice = refusals[reason].retry;
  if (advice === 'never') return { seconds: undefined, automatic: false };
  if (retryAfter !== undefined) {
    return { seconds: retryAfter, automatic: retryAfter <= RETRY_AFTER_MAX_S };
  }
  const seconds = advice === 'soon' ? 1 + Math.floor(random * 2) : 30 + Math.floor(random * 30);
  return { seconds, automatic: true };
}
