// Routes that uploads and text projects share.
import { refuse } from '../../shared/refusal.ts';
import type { Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit } from '../auth/admit.ts';
import type { Handler } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { callJob, type FoundJob } from './find-job.ts';
import { follow } from './follow.ts';
import { inSession } from './in-session.ts';
import type { JobKind, JobRow } from './kinds.ts';
import { listPage, readPage } from './list-jobs.ts';

const fresh = { 'cache-control': 'no-store' };

type JobHandlers = Readonly<Record<'show' | 'list' | 'follow' | 'remove' | 'rerun', Handler>>;

/** Returns the handlers of a kind of job. */
export function jobHandlers<Row extends JobRow>(kind: JobKind<Row>): JobHandlers {
  const { name, scope, row, isEnded, show } = kind;

  /** Changes a job within a lease and with a record, like new work. */
  const change =
    (action: string, call: { readonly method: 'DELETE' | 'POST'; readonly below?: string }): Handler =>
    async (request, context, { name: id }) => {
      const work = (claims: Claims) => callJob({ kind, id, ...call }, row, claims, context);
      return answerJob(kind, await inSession(request, context, { scope, action: `${name}.${action}` }, work));
    };

  return {
    async show(request, context, { name: id }) {
      const claims = await admit(request, scope, context);
      if (!claims.ok) return refuseWith(claims.refusal);
      return answerJob(kind, await callJob({ kind, id, method: 'GET' }, row, claims.value, context));
    },

    /** `?after=ID&limit=N`, newest first. */
    async list(request, context) {
      const claims = await admit(request, scope, context);
      if (!claims.ok) return refuseWith(claims.refusal);
      const query = readPage(new URL(request.url).searchParams, kind);
      const page = query.ok ? await listPage(kind, query.value, claims.value, context) : query;
      if (!page.ok) return refuseWith(page.refusal);
      const { rows, next } = page.value;
      return Response.json({ object: 'list', data: rows.map(show), ...(next && { next }) }, { headers: fresh });
    },

    /** Sends an event for each change, until the job has ended. */
    async follow(request, context, { name: id }) {
      const claims = await admit(request, scope, context);
      if (!claims.ok) return refuseWith(claims.refusal);
      return follow<Row>(request, {
        tenant: claims.value.tenant,
        now: () => context.runtime.now(),
        look: (after, waitSeconds, signal) => {
          const below = `/events?after=${after}&wait=${waitSeconds}`;
          return callJob({ kind, id, method: 'GET', below, waitSeconds, signal }, row, claims.value, context);
        },
        isOver: isEnded,
        show,
      });
    },

    /** Cancels a running job; deletes the remains of an ended one. */
    remove: change('delete', { method: 'DELETE' }),

    /** Starts a new run on what is stored. */
    rerun: change('rerun', { method: 'POST', below: '/rerun' }),
  };
}

/** Answers with the job as its owner sees it. */
export function answerJob<Row extends JobRow>(
  kind: JobKind<Row>,
  found: Result<FoundJob<Row>>,
  status = 200,
): Response {
  if (!found.ok) return refuseWith(found.refusal);
  const { value } = found.value;
  if (!value) return refuseWith(refuse('uploads_unavailable', undefined, 'an empty answer'));
  return Response.json(kind.show(value), { status, headers: fresh });
}
