/** Packets of a file with one Ogg stream (RFC 3533), in order: of Opus the two headers first, then the sound. */
export function oggPackets(file: Uint8Array): Uint8Array[] {
  const packets: Uint8Array[] = [];
  let open: number[] = [];
  for (let page = 0; page < file.length; ) {
    if (String.fromCharCode(...file.subarray(page, page + 4)) !== 'OggS') throw new Error(`no page at ${page}`);
    const count = file[page + 26] ?? 0;
    const lacing = file.subarray(page + 27, page + 27 + count);
    let at = page + 27 + count;
    for (const length of lacing) {
      open.push(...file.subarray(at, at + length));
      at += length;
      // A packet goes on in the next segment, on the next page if need be, while segments are full.
      if (length === 255) continue;
      packets.push(Uint8Array.from(open));
      open = [];
    }
    page = at;
  }
  return packets;
}
