// The functions of a zone as the edge sees them: rows in memory, and the checks of shared/callers.ts.
import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose';
import { DEADLINE_HEADER, EDGE_ISSUER, FUNCTIONS_AUDIENCE, OWNER_HEADER, SERVICE_TYPE } from '../../shared/callers.ts';
import { newUpload, type UploadRow } from '../../shared/jobs/upload-contract.ts';
import type { Reason } from '../../shared/refusal.ts';
import type { ZoneKey } from '../../shared/seal/zone-key.ts';
import { keys } from '../edge/authority.ts';
import { publicHalf } from '../edge/bindings.ts';
import { elsewhere } from './network.ts';

export interface FunctionsRequest {
  readonly line: string;
  readonly body: unknown;
  readonly claims: JWTPayload;
  /** The only subject that the token lets it answer about. */
  readonly owner?: unknown;
  /** Epoch ms after which functions drop the call. */
  readonly deadline?: number;
}

export const zoneKey = {
  kid: 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs',
  jwk: {
    kty: 'EC',
    crv: 'P-256',
    x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
    y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  },
} as const;

const edgeKeys = createLocalJWKSet({ keys: [publicHalf(keys.edge)] });

export class FakeFunctions {
  readonly requests: FunctionsRequest[] = [];
  readonly rows = new Map<string, UploadRow>();
  /** Says this instead of an answer. */
  refusal: { reason: Reason; params?: Record<string, string | number> } | undefined;
  /** Answers every request. */
  plain: (() => Response | Promise<Response>) | undefined;
  /** Ids that a page of a list leaves out, as rows of other subjects. */
  readonly hidden = new Set<string>();
  /** Answers this to a question for one row. */
  ofRow: (() => Response) | undefined;
  withKey = true;
  key: ZoneKey = zoneKey;
  maxBytes = 1_000;
  /** Changes that `events` waits for. */
  readonly news: UploadRow[] = [];
  readonly zone: string;

  constructor(zone: 'eu' | 'us') {
    this.zone = zone;
    elsewhere.set(`functions-${zone}.test`, (request) => this.#answer(request));
  }

  row(change: Partial<UploadRow> = {}): UploadRow {
    const id = change.id ?? `01890a5d-ac96-774b-bcce-${crypto.randomUUID().slice(-12)}`;
    const row: UploadRow = {
      id,
      tenant: 'acme',
      status: 'done',
      run: 1,
      seq: 5,
      zone: this.zone,
      model: 'reference-en',
      class: 'batch',
      sealed: true,
      formats: ['json'],
      keepDays: 0,
      created: 1_700_000_000_000,
      updated: 1_700_000_060_000,
      expires: 1_700_086_400_000,
      pieces: 1,
      piecesDone: 1,
      warnings: [],
      audio: 'deleted',
      transcript: 'held',
      notice: 'none',
      ...change,
    };
    this.rows.set(id, row);
    return row;
  }

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const token = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? '';
    const { payload, protectedHeader } = await jwtVerify(token, edgeKeys, {
      issuer: EDGE_ISSUER,
      audience: FUNCTIONS_AUDIENCE,
      typ: SERVICE_TYPE,
      maxTokenAge: 60,
      currentDate: new Date(Date.now()),
      crit: { [OWNER_HEADER]: true },
    });
    const owner = protectedHeader[OWNER_HEADER];
    const body: unknown = ['POST', 'PUT'].includes(request.method)
      ? await request.json().catch(() => undefined)
      : undefined;
    const line = `${request.method} ${url.pathname}${url.search}`;
    const until = request.headers.get(DEADLINE_HEADER);
    const deadline = until !== null && { deadline: Number(until) };
    this.requests.push({ line, body, claims: payload, owner, ...deadline });
    if (this.plain) return this.plain();
    const { refusal } = this;
    if (refusal) return Response.json({ error: refusal }, { status: 409 });
    if (url.pathname === '/api/jobs/replay') {
      return Response.json({ zones: [{ zone: this.zone, replayed: 2, rerun: 1, dropped: 0 }] });
    }
    const [, tenant, id, below] = url.pathname.replace('/api/uploads', '').split('/');
    if (!tenant) return this.#grant(body);
    if (!id) {
      const limit = Number(url.searchParams.get('limit'));
      const after = url.searchParams.get('after') ?? 'g';
      const uploads = [...this.rows.values()].filter((row) => row.id < after).sort((a, b) => (a.id < b.id ? 1 : -1));
      const page = uploads.slice(0, limit);
      const shown = page.filter((row) => !this.hidden.has(row.id));
      return Response.json({ uploads: shown, ...(uploads.length > limit && { next: page.at(-1)?.id }) });
    }
    const row = this.rows.get(id);
    if (!row || row.tenant !== tenant) return Response.json({ error: { reason: 'upload_unknown' } }, { status: 404 });
    if (below === 'events') return this.#tell(row, Number(url.searchParams.get('after')));
    if (below === 'open') {
      const read = { url: `https://storage.test/outcomes/${tenant}/${id}/1/transcript?sig=secret`, etag: '"1"' };
      return Response.json({ upload: row, read, zone: row.zone, zoneKeyId: zoneKey.kid, expires: Date.now() + 60_000 });
    }
    if (below === 'rerun') return Response.json(this.row({ ...row, status: 'admitted', run: row.run + 1 }));
    if (request.method === 'DELETE') return Response.json(this.row({ ...row, status: 'cancelled' }));
    return this.ofRow?.() ?? Response.json(row);
  }

  #grant(body: unknown): Response {
    const asked = newUpload.parse(body);
    const { model, zone, sealed } = asked;
    this.row({ id: asked.id, tenant: asked.tenant, model, zone, sealed, status: 'uploaded', transcript: 'none' });
    const grant = {
      id: asked.id,
      url: `https://storage.test/uploads/${asked.tenant}/${asked.id}?sig=secret`,
      headers: { 'x-ms-blob-type': 'BlockBlob' },
      expires: Date.now() + 3_600_000,
      maxBytes: this.maxBytes,
      ...(this.withKey && { zoneKey: this.key }),
    };
    return Response.json(grant, { status: 201 });
  }

  #tell(row: UploadRow, after: number): Response {
    if (row.seq > after) return Response.json(row);
    const next = this.news.shift();
    if (!next) return new Response(null, { status: 204 });
    this.rows.set(next.id, next);
    return Response.json(next);
  }
}
