// Replaces the text of one segment, sealed here for the next edition of its document.

import { readSegment } from '../../../shared/jobs/document.ts';
import { PROJECT_EDIT_TRIES_MAX } from '../../../shared/jobs/limits.ts';
import { publicText } from '../../../shared/refusal.ts';
import { sealSmall } from '../../../shared/seal/envelope-stream.ts';
import { zoneKey } from '../../../shared/seal/zone-key.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import { type ProjectState, projectState } from './project-state.ts';

interface Change {
  readonly document: string;
  readonly segment: string;
  readonly text: string;
  readonly plain: boolean;
}

export async function editProject(
  url: string,
  change: Change,
  headers: Record<string, string>,
  send: typeof fetch,
): Promise<{ readonly edited: ProjectState } | Answer> {
  const { document, segment } = change;
  const at = `${url}/documents/${encodeURIComponent(document)}/segments/${encodeURIComponent(segment)}`;
  for (let attempt = 1; ; attempt += 1) {
    const body = change.plain ? { text: change.text } : await seal(url, change, headers, send);
    if ('exit' in body) return body;
    const response = await send(at, {
      method: 'PUT',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (response.ok) return { edited: projectState.parse(await response.json()) };
    const answer = await refused(response);
    if (attempt >= PROJECT_EDIT_TRIES_MAX || !answer.text.includes('edition_passed')) return answer;
  }
}

async function seal(
  url: string,
  { document, segment, text }: Change,
  headers: Record<string, string>,
  send: typeof fetch,
): Promise<{ edition: number; sealed: string } | Answer> {
  const read = readSegment(text);
  if (!read.ok) return wrong(publicText(read.refusal));
  const response = await send(url, { headers });
  if (!response.ok) return refused(response);
  const { tenant, documents, zone_key: key } = projectState.parse(await response.json());
  const about = documents.find(({ index }) => String(index) === document);
  const parsed = zoneKey.safeParse(key);
  if (!about || !parsed.success) return wrong(about ? 'the edge named no key to seal to' : `no document ${document}`);
  const edition = about.edition + 1;
  const facts = { tenant, upload: about.id, name: `1/pieces/${segment}-${edition}` };
  const file = await sealSmall(facts, parsed.data, new TextEncoder().encode(read.value));
  return { edition, sealed: Buffer.from(file).toString('base64') };
}
