/** Element of Matroska (RFC 9559) with a size of 8 bytes; unknown without a body. */
function element(id: number, ...body: (Uint8Array | readonly number[])[]): Uint8Array {
  const bytes = Buffer.concat(body.map((part) => Uint8Array.from(part)));
  const size = Buffer.alloc(8, 0xff);
  if (body.length > 0) size.writeBigUInt64BE(BigInt(bytes.length));
  size[0] = 1;
  const name = Buffer.from(id.toString(16), 'hex');
  return new Uint8Array(Buffer.concat([name, size, bytes]));
}

/** WebM of one track as a browser's MediaRecorder writes it live: no sizes, a cluster a second. */
export function liveWebm(codec: string, head: Uint8Array, packets: readonly Uint8Array[], track = 1): Uint8Array {
  const entry = element(
    0xae,
    element(0xd7, [track]),
    element(0x83, [2]),
    element(0x86, Buffer.from(codec)),
    element(0x63a2, head),
  );
  const clusters = packets.flatMap((packet, i) => [
    ...(i % 50 === 0 ? [element(0x1f43b675), element(0xe7, [i / 50])] : []),
    element(0xa3, [0x80 | track, 0, (i % 50) * 20, 0x80], packet),
  ]);
  const doc = element(0x1a45dfa3, element(0x4282, Buffer.from('webm')));
  return new Uint8Array(Buffer.concat([doc, element(0x18538067), element(0x1654ae6b, entry), ...clusters]));
}
