// Deepgram's projects at an address that this service uses for texts: its clients find their tenant as one project.
import { refuse } from '../../shared/refusal.ts';
import { admit } from '../auth/admit.ts';
import type { Handler } from '../context.ts';
import { refuseAsDeepgram } from './deepgram-refuse.ts';

/** Reports whether a client is Deepgram's: it names itself, or its key comes in Deepgram's scheme. */
export const isDeepgramClient = (headers: Headers): boolean =>
  /^token /i.test(headers.get('authorization') ?? '') ||
  ['x-fern-sdk-name', 'user-agent'].some((name) => /deepgram/i.test(headers.get(name) ?? ''));

/** Answers `GET /v1/projects` and `GET /v1/projects/{tenant}`, by which clients check a key; the others are not built. */
export const answerDeepgramProjects: Handler = async (request, context) => {
  const claims = await admit(request, ['transcribe', 'stream', 'models', 'projects'], context);
  if (!claims.ok) return refuseAsDeepgram(claims.refusal, context.id);
  const { tenant } = claims.value;
  const project = { project_id: tenant, name: tenant };
  const path = new URL(request.url).pathname;
  const body = { '/v1/projects': { projects: [project] }, [`/v1/projects/${tenant}`]: project }[path];
  if (request.method !== 'GET' || !body) {
    return refuseAsDeepgram(refuse('route_unbuilt', { feature: 'Administration of Deepgram projects' }), context.id);
  }
  return Response.json(body, { headers: { 'cache-control': 'no-store', 'dg-request-id': context.id } });
};
