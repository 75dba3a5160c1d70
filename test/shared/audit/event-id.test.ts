import { describe, expect, it } from 'vitest';
import { auditEvent } from '../../../shared/audit/event.ts';
import { eventId } from '../../../shared/audit/event-id.ts';

describe('A1 ids of audit events', () => {
  it('RFC 9562 appendix A.6, the example of version 7', () => {
    const random = Uint8Array.of(0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f);
    expect(eventId(0x017f22e279b0, random)).toBe('017f22e2-79b0-7cc3-98c4-dc0c0c07398f');
  });

  it('sort by time', () => {
    const random = new Uint8Array(10).fill(0xff);
    const ids = [1, 2, 1_700_000_000_000, 1_700_000_000_001].map((now) => eventId(now, random));
    expect([...ids].sort()).toEqual(ids);
  });
});

describe('R14 the shape of an event has no room for content', () => {
  it('unknown members are dropped', () => {
    const event = {
      v: 1,
      id: eventId(1, new Uint8Array(10)),
      at: 1,
      producer: 'edge',
      type: 'inference.complete',
      tenant: 't',
      request: 'r',
      action: 'transcribe',
      status: 200,
      transcript: 'words',
      token: 'secret',
      audio: [1, 2, 3],
    };
    expect(Object.keys(auditEvent.parse(event)).sort()).toEqual(
      ['action', 'at', 'id', 'producer', 'request', 'status', 'tenant', 'type', 'v'].sort(),
    );
  });
});
