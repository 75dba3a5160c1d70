import { z } from 'zod';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { admit } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { healthOf, takesWork } from '../routing/agent-health.ts';
import { readSnapshots } from '../routing/snapshot.ts';

/** A voice, with the members that clients of OpenAI-compatible servers read: `id` and `name`. */
export const listedVoice = z.object({
  id: z.string().describe('Value of `voice`'),
  name: z.string(),
  model: z.string(),
  languages: z.array(z.string()),
  ssml: z.array(z.string()).describe('SSML elements that the voice takes; none takes plain text only.'),
});
export type ListedVoice = z.infer<typeof listedVoice>;
export const listedVoices = z.object({ voices: z.array(listedVoice) });

/** `GET /v1/audio/voices`: the voices that the caller could use now, in its own zones. */
export async function listVoices(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, ['synthesize', 'models'], context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, env, runtime } = context;
  const zones = settings.zones.filter((zone) => claims.value.zones.includes(zone));
  const voices = voicesOf(await readSnapshots(zones, env.ROSTER, runtime));
  return Response.json({ voices } satisfies z.infer<typeof listedVoices>);
}

/** Voices of all models that take work, by model; the default of a model first. */
export function voicesOf(snapshots: readonly Snapshot[]): ListedVoice[] {
  const found = new Map<string, ListedVoice>();
  for (const { at, entries } of snapshots) {
    for (const { description, load, heard } of entries) {
      if (!takesWork(healthOf({ load, heard }, at))) continue;
      for (const { name: model, stage, languages, voices = [], ssml = [] } of description.models) {
        if (stage !== 'full' && stage !== 'canary') continue;
        for (const id of voices) found.set(`${model} ${id}`, { id, name: id, model, languages, ssml });
      }
    }
  }
  return [...found.values()].sort((one, other) => (one.model < other.model ? -1 : Number(one.model > other.model)));
}
