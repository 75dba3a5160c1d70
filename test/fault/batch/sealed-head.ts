// Head of a sealed file, as functions read it. The key is fake, since no test opens the file.
export function admitHead(tenant: string, upload: string, kid: string, name = 'upload'): Uint8Array {
  const head = {
    v: 1,
    suite: 5,
    key: kid,
    enc: 'A'.repeat(87),
    wrapped: 'A'.repeat(107),
    tenant,
    upload,
    name,
  };
  const json = new TextEncoder().encode(JSON.stringify(head));
  const magic = new TextEncoder().encode('AURICLE1');
  return Uint8Array.from([...magic, json.length >> 8, json.length & 255, ...json]);
}
