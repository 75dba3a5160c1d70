// auricle uploads, auricle replay
import { z } from 'zod';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { realEnv, type UploadEnv } from './upload-env.ts';
import { uploadState } from './upload-follow.ts';
import { formatProblem, listLine, printEnd, printUpload } from './upload-print.ts';

const list = z.object({ data: z.array(uploadState.extend({ created: z.string(), filename: z.string().optional() })) });

export async function uploads(
  given: Arguments,
  headers: Record<string, string>,
  world: UploadEnv = realEnv(),
): Promise<Answer> {
  const [what, id = ''] = given.operands;
  if (what === undefined) return listAll(given, headers, world);
  const url = `${given.edge}/v1/uploads/${encodeURIComponent(id)}`;
  if (what === 'cancel') return printUpload(url, 'DELETE', headers, world);
  if (what === 'rerun') return printUpload(`${url}/rerun`, 'POST', headers, world);
  if (what === 'status') return printUpload(url, 'GET', headers, world);
  const problem = formatProblem(given.format);
  return problem === undefined ? printEnd(url, given, headers, world) : wrong(problem);
}

async function listAll(given: Arguments, headers: Record<string, string>, { fetch }: UploadEnv): Promise<Answer> {
  const response = await fetch(`${given.edge}/v1/uploads`, { headers });
  if (!response.ok) return refused(response);
  const value = await response.json();
  const lines = list.parse(value).data.map((one) => listLine(one, one.filename ?? ''));
  return { exit: 0, text: lines.length > 0 ? lines.join('\n') : 'no uploads', value };
}

const replayed = z.object({
  zones: z.array(z.object({ zone: z.string(), replayed: z.number(), rerun: z.number(), dropped: z.number() })),
});

/** Puts dead-lettered jobs back into their queue. Idempotent. */
export async function replay(given: Arguments, headers: Record<string, string>): Promise<Answer> {
  const query = given.zone === undefined ? '' : `?zone=${encodeURIComponent(given.zone)}`;
  const response = await fetch(`${given.edge}/v1/jobs/replay${query}`, { method: 'POST', headers });
  if (!response.ok) return refused(response);
  const value = replayed.parse(await response.json());
  const lines = value.zones.map(
    ({ zone, replayed: sent, rerun, dropped }) =>
      `${zone}: ${sent} sent again, ${rerun} uploads run again, ${dropped} no longer wanted`,
  );
  return { exit: 0, text: lines.join('\n'), value };
}
