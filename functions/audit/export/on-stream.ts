// GET /api/audit/stream/{zone}/{tenant}?from=INDEX: a page of the tenant's leaves from that place of the log on. The place is
// the cursor: no time, which late events would be missed by.
import { type StreamPage, streamPage } from '../../../shared/audit/bundle/contract.ts';
import { isoTime } from '../../../shared/audit/derived/row.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { hashLeaf } from '../../../shared/audit/tree.ts';
import { limits } from '../../../shared/limits.ts';
import { refuse } from '../../../shared/refusal.ts';
import type { Result } from '../../../shared/result.ts';
import { answer, answerNo } from '../../answer.ts';
import type { EdgeCaller } from '../../caller/edge-caller.ts';
import { newestState } from '../acknowledge.ts';
import { publishedSize } from '../publish-checkpoint.ts';
import type { ExportDesk } from './export-desk.ts';
import { LogFiles } from './log-files.ts';
import { asked, type Question } from './on-exports.ts';
import { type OwnLeaf, ownLeaves } from './own-leaves.ts';

/** Tells that somebody streams; `undefined` where nobody counts. */
export type TellStream = (zone: string, caller: EdgeCaller) => Promise<Result<unknown> | undefined>;

export const onStream = (desk: ExportDesk | undefined, tell: TellStream | undefined): Question =>
  asked(desk, async (request, caller, found, zone) => {
    const from = Number(request.query.get('from') ?? 0);
    if (!Number.isSafeInteger(from) || from < 0)
      return answerNo(refuse('field_invalid', { field: 'from', rule: 'must be a whole number' }));
    const state = await newestState(found.store, zone);
    const year = Number(request.query.get('year') ?? state?.year);
    if (!state || !Number.isSafeInteger(year)) return answerNo(refuse('audit_closed', undefined, 'no log'));
    const origin = `${found.base}/${zone}/${year}`;
    const size = await publishedSize({ store: found.store, zone, year });
    const page = await readPage(new LogFiles(found.store, zone, year, size), caller.tenant, origin, from);
    const told = page.data.length > 0 ? await tell?.(zone, caller) : undefined;
    if (told && !told.ok) return answerNo(told.refusal);
    return answer(200, streamPage.parse(page));
  });

async function readPage(log: LogFiles, tenant: string, origin: string, from: number): Promise<StreamPage> {
  const data: StreamPage['data'] = [];
  const first = Math.floor(from / TILE_WIDTH);
  const until = Math.min(log.bundles, first + limits.auditStreamBundles.value);
  let next = Math.min(from, log.size);
  for (let bundle = first; bundle < until && data.length < limits.auditStreamLeaves.value; bundle += 1) {
    const entries = await log.entries(bundle);
    const own = ownLeaves(tenant, bundle * TILE_WIDTH, entries).filter(({ index }) => index >= from);
    data.push(...own.map((leaf) => envelopeOf(leaf, origin)));
    next = bundle * TILE_WIDTH + entries.length;
  }
  return { data, next, size: log.size };
}

export function envelopeOf({ index, text, facts }: OwnLeaf, origin: string): StreamPage['data'][number] {
  const { id, type, time, tn } = facts;
  const leafHash = Buffer.from(hashLeaf(new TextEncoder().encode(text))).toString('hex');
  return {
    ...{ specversion: '1.0', id, source: origin, type: `auricle.${type}`, time: isoTime(time) ?? '' },
    ...(tn !== undefined && { subject: tn }),
    datacontenttype: 'application/json',
    data: { log: origin, index, leaf_hash: leafHash, leaf: facts.leaf },
  };
}
