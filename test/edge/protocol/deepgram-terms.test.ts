import { describe, expect, it } from 'vitest';
import { deepgramListen } from '../../../edge/protocol/deepgram-listen.ts';

const open = (query: string) =>
  deepgramListen(new URL(`https://edge.test/v1/listen?model=m&encoding=linear16&sample_rate=16000&${query}`));

function begin(query: string) {
  const made = open(query);
  if (!made.ok) throw new Error(JSON.stringify(made.refusal));
  return { steps: made.value.begin?.(0), send: (message: object) => made.value.receive(JSON.stringify(message), 0) };
}

describe('U5 terms of Deepgram clients', () => {
  it('come from the address and, mid-stream, from Configure', () => {
    const { steps, send } = begin('keyterm=new%20york&keyterm=&keywords=gamma:2&keywords=um:-3');
    const terms = [{ text: 'new york' }, { text: 'gamma', boost: 2 }, { text: 'um', boost: -3 }];
    expect(steps).toMatchObject([{ type: 'start', request: { options: { terms } } }]);
    expect(send({ type: 'Configure', keyterms: ['delta', ''] })).toMatchObject([
      { type: 'options', options: { interim: false, terms: [{ text: 'delta' }] } },
      { type: 'reply', frames: [expect.stringContaining('ConfigureSuccess')] },
    ]);
    expect(send({ type: 'Configure', keyterms: ['x'.repeat(65)] })).toMatchObject([
      { type: 'reply', frames: [expect.stringContaining('ConfigureFailure')] },
    ]);
  });

  it('are refused beyond the bounds by name', () => {
    const rule = 'must be at most 200 terms';
    expect(open('keyterm=a&'.repeat(201))).toMatchObject({ refusal: { params: { field: 'keyterm', rule } } });
    const both = `${'keyterm=a&'.repeat(200)}keywords=b`;
    expect(open(both)).toMatchObject({ refusal: { params: { field: 'keywords', rule } } });
  });
});
