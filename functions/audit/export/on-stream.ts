// GET /api/audit/stream/{zone}/{tenant}?from=CURSOR: a page of the tenant's leaves from that place of a log on, and at its
// end from the log of the next year. The place is the cursor: no time, which late events would be missed by.
import { type StreamPage, streamPage } from '../../../shared/audit/bundle/contract.ts';
import { formatCursor, readCursor } from '../../../shared/audit/bundle/cursor.ts';
import { originOfLog } from '../../../shared/audit/delivery.ts';
import { isoTime } from '../../../shared/audit/derived/row.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { hashLeaf } from '../../../shared/audit/tree.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import type { EdgeCaller } from '../../caller/edge-caller.ts';
import type { EdgeHandler } from '../../caller/from-edge.ts';
import { answer, answerNo } from '../../http/answer.ts';
import { TenantLimiter } from '../../http/limiter.ts';
import { newestState } from '../log/acknowledge.ts';
import { yearAfter } from '../log/find-years.ts';
import { LogFiles } from '../log/log-files.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';
import type { ExportContext } from './export-context.ts';
import { forExports } from './on-exports.ts';
import { type OwnLeaf, ownLeaves } from './own-leaves.ts';

/** Bundles of entries that one page of a log stream searches: 16,384 entries. */
const STREAM_PAGE_BUNDLES = 64;
/** Leaves of one page of a log stream: a MiB or two. */
const STREAM_PAGE_LEAVES_MAX = 1_000;
/**
 * Concurrent pages of log streams in one process: each reads up to STREAM_PAGE_BUNDLES bundles, one after the
 * other.
 */
const STREAM_PAGES_MAX = 16;
/** Concurrent pages of one tenant: a quarter of STREAM_PAGES_MAX; a stream fetches a page once a second. */
const STREAM_PAGES_PER_TENANT_MAX = 4;

/** Reports a stream; `undefined` where no reads are reported. */
export type ReportStream = (zone: string, caller: EdgeCaller) => Promise<Result<unknown> | undefined>;

export function onStream(context: ExportContext | undefined, reportStream: ReportStream | undefined): EdgeHandler {
  const limiter = new TenantLimiter(STREAM_PAGES_MAX, STREAM_PAGES_PER_TENANT_MAX);
  return forExports(context, (request, caller, found, zone) =>
    limiter.run(caller.tenant, async () => {
      const place = await placeOf(found, zone, request.query.get('from') ?? '0');
      if (!place.ok) return answerNo(place.refusal);
      const page = await readPage(caller.tenant, place.value);
      const reported = page.data.length > 0 ? await reportStream?.(zone, caller) : undefined;
      if (reported && !reported.ok) return answerNo(reported.refusal);
      return answer(200, streamPage.parse(page));
    }),
  );
}

interface At {
  readonly log: LogFiles;
  readonly origin: string;
  readonly year: number;
  readonly from: number;
  /** Year of the log that goes on where this one ended. */
  readonly later: number | undefined;
}

/** Parses the cursor. Refuses one past the end of its log. */
async function placeOf({ store, base }: ExportContext, zone: string, text: string): Promise<Result<At>> {
  const wrong = (rule: string) => no(refuse('field_invalid', { field: 'from', rule }));
  const cursor = readCursor(text);
  if (!cursor) return wrong('must be a place in a log, as 2026-500000');
  const state = await newestState(store, zone);
  if (!state) return no(refuse('audit_closed', undefined, 'no log'));
  const { year = state.year, index: from } = cursor;
  const size = await publishedSize({ store, zone, year });
  if (size === 0 && year !== state.year) return wrong(`there is no log of ${year}`);
  if (from > size) return wrong(`the log of ${year} has ${size} entries`);
  const later = await yearAfter(store, zone, year, state.year);
  return ok({ log: new LogFiles(store, zone, year, size), origin: originOfLog(base, zone, year), year, from, later });
}

async function readPage(tenant: string, { log, origin, year, from, later }: At): Promise<StreamPage> {
  const data: StreamPage['data'] = [];
  const first = Math.floor(from / TILE_WIDTH);
  const until = Math.min(log.bundles, first + STREAM_PAGE_BUNDLES);
  let next = from;
  for (let bundle = first; bundle < until && data.length < STREAM_PAGE_LEAVES_MAX; bundle += 1) {
    const entries = await log.entries(bundle);
    const own = ownLeaves(tenant, bundle * TILE_WIDTH, entries).filter(({ index }) => index >= from);
    data.push(...own.map((leaf) => envelopeOf(leaf, origin)));
    next = bundle * TILE_WIDTH + entries.length;
  }
  const over = next >= log.size;
  const onward = over && later !== undefined ? formatCursor(later, 0) : formatCursor(year, next);
  return { data, year, next: onward, ended: over && later === undefined };
}

function envelopeOf({ index, text, facts }: OwnLeaf, origin: string): StreamPage['data'][number] {
  const { id, type, time, tn } = facts;
  const leafHash = Buffer.from(hashLeaf(new TextEncoder().encode(text))).toString('hex');
  return {
    ...{ specversion: '1.0', id, source: origin, type: `auricle.${type}`, time: isoTime(time) ?? '' },
    ...(tn !== undefined && { subject: tn }),
    datacontenttype: 'application/json',
    data: { log: origin, index, leaf_hash: leafHash, leaf: facts.leaf },
  };
}
