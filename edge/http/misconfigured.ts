import { refuse } from '../../shared/refusal.ts';
import type { Problem } from '../../shared/settings/problem.ts';
import { refuseWith } from './refuse.ts';

const logged = new WeakSet<readonly Problem[]>();

/**
 * Answers for an edge whose settings have problems. A Worker cannot refuse to start, so it serves nothing: every request
 * gets `misconfigured`. The log of each isolate and `/healthz` name the settings and their rules, never a value.
 */
export function answerMisconfigured(path: string, problems: readonly Problem[]): Response {
  if (!logged.has(problems)) {
    logged.add(problems);
    console.error(JSON.stringify({ event: 'misconfigured', settings: problems }));
  }
  if (path !== '/healthz') return refuseWith(refuse('misconfigured'));
  const headers = { 'cache-control': 'no-store' };
  return Response.json({ status: 'misconfigured', settings: problems }, { status: 503, headers });
}
