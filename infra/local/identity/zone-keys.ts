// Keys that files of a zone are sealed to. In the cloud a key vault releases their private halves to attested
// agents only; here the part `release` holds them, and no other part knows their path.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { generateZoneKey, type ZoneKeys, zoneKeyId } from '../../../shared/seal/zone-key.ts';
import { writePrivate } from '../../identity/keys.ts';

export type ZoneKeyFiles = {
  /** Zone → file with its private keys, newest first: `{"keys":[…]}`. */
  privateFiles: Record<string, string>;
  /** Public halves of all zones. */
  publicFile: string;
  publicKeys: ZoneKeys;
};

export async function createZoneKeys(folder: string, zones: readonly string[]): Promise<ZoneKeyFiles> {
  const privateFiles: Record<string, string> = {};
  const publicKeys: ZoneKeys = {};
  for (const zone of zones) {
    const file = path.join(folder, 'zones', `${zone}.private.jwks.json`);
    if (!existsSync(file)) {
      const { privateJwk } = await generateZoneKey();
      writePrivate(file, JSON.stringify({ keys: [privateJwk] }));
    }
    const { keys } = JSON.parse(readFileSync(file, 'utf8')) as { keys: { x: string; y: string }[] };
    privateFiles[zone] = file;
    publicKeys[zone] = await Promise.all(
      keys.map(async ({ x, y }) => {
        const jwk = { kty: 'EC', crv: 'P-256', x, y } as const;
        return { kid: await zoneKeyId(jwk), jwk };
      }),
    );
  }
  const publicFile = path.join(folder, 'zone-keys.json');
  writePrivate(publicFile, `${JSON.stringify(publicKeys, undefined, 2)}\n`);
  return { privateFiles, publicFile, publicKeys };
}
