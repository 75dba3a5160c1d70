import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planText } from '../../../../infra/pool/agent/tts/speech-plan.ts';
import { readSsml, ssmlElements } from '../../../../infra/pool/agent/tts/ssml.ts';
import { publicText } from '../../../../shared/refusal.ts';

const voice = { model: 'voice-en', languages: ['en'], ssml: ssmlElements };
const read = (body: string, rate = 1) => readSsml(`<speak>${body}</speak>`, rate, voice);

/** Returns the steps: sentences as they are, silence as milliseconds. */
function stepsOf(body: string, rate = 1) {
  const steps = read(body, rate);
  if (!steps.ok) throw new Error(publicText(steps.refusal));
  return steps.value.flatMap(({ silenceMs, ...sentence }) => [
    ...(silenceMs > 0 ? [silenceMs] : []),
    ...(sentence.text === '' ? [] : [sentence]),
  ]);
}

function ruleOf(document: string): string {
  const steps = readSsml(document, 1, voice);
  return steps.ok ? 'read' : publicText(steps.refusal);
}

const said = (text: string, rate = 1, pitch = 1) => ({ text, rate, pitch });

describe('R2 SSML', () => {
  it('reads sentences and paragraphs with pauses between them', () => {
    expect(stepsOf('<p>One. Two.</p><p><s>Three</s><s>four</s></p>')).toEqual([
      said('One.'),
      250,
      said('Two.'),
      500,
      said('Three'),
      250,
      said('four'),
    ]);
  });

  it('multiplies nested prosody with the rate of the request', () => {
    const body = 'a1 <prosody rate="150%" pitch="+12%">b2 <prosody pitch="-2st" rate="slow">c3</prosody></prosody> d4';
    const [a, b, c, d] = stepsOf(body, 0.8);
    expect([a, d]).toEqual([said('a1', 0.8), said('d4', 0.8)]);
    expect(b).toMatchObject({ text: 'b2', pitch: 1.12, rate: expect.closeTo(1.2) });
    expect(c).toMatchObject({ text: 'c3', pitch: expect.closeTo(1.12 * 2 ** (-2 / 12)), rate: expect.closeTo(0.9) });
  });

  it('puts the silence of a break in place of a pause', () => {
    expect(stepsOf('One.<break time="1.5s"/>Two.<break strength="none"/>Three.<break time="20ms"/>')).toEqual([
      said('One.'),
      1_500,
      said('Two.'),
      said('Three.'),
      20,
    ]);
  });

  it('replaces aliases and reads characters, digits and ordinals', () => {
    const body =
      '<sub alias="World Wide Web">WWW</sub> <say-as interpret-as="characters">ab1</say-as> ' +
      '<say-as interpret-as="digits">42</say-as> <say-as interpret-as="ordinal">3</say-as> &amp; &#65;';
    expect(stepsOf(body)).toEqual([said('World Wide Web a b 1 4 2 3th & A')]);
  });

  it.each([
    ['<speak>one <b>two</b></speak>', 'the voice does not take the SSML element "b"'],
    ['<speak><audio src="https://x"/>one</speak>', 'element "audio"'],
    ['<speak><prosody volume="loud">one</prosody></speak>', '"prosody" does not take the attribute "volume"'],
    ['<speak><prosody rate="900%">one</prosody></speak>', 'rate="900%" does not give a rate from 50% to 200%'],
    ['<speak><prosody pitch="100Hz">one</prosody></speak>', 'pitch="100Hz" does not change the pitch by -33% to +50%'],
    ['<speak>one<break time="11s"/></speak>', 'time="11s" is not a time'],
    ['<speak>one<break>two</break></speak>', '"break" is not empty'],
    ['<speak><say-as interpret-as="date">1/2</say-as></speak>', 'interpret-as="date" is not known'],
    ['<speak><sub>one</sub></speak>', '"sub" needs the attribute "alias"'],
    ['<speak><speak>one</speak></speak>', '"speak" must be the root'],
    ['<speak xml:lang="de">eins</speak>', 'does not support the language "de"'],
    ['<speak>one', 'it is not well-formed XML'],
    ['<speak>one</p></speak>', 'it is not well-formed XML'],
    ['<speak>one</speak><speak>two</speak>', 'it is not well-formed XML'],
    ['<!DOCTYPE speak [<!ENTITY a "b">]><speak>&a;</speak>', 'is not allowed'],
    ['<speak>&nbsp;</speak>', 'it is not well-formed XML'],
    ['<speak><?php one ?></speak>', 'a processing instruction is not allowed'],
    [`<speak>${'<p>'.repeat(16)}one${'</p>'.repeat(16)}</speak>`, 'elements nest over 16 levels'],
    [`<speak>one${'<break time="10s"/>'.repeat(7)}</speak>`, 'its breaks are over 60 s together'],
    ['<speak><break time="1s"/></speak>', 'nothing that can be spoken'],
  ])('refuses %s', (document, rule) => {
    expect(ruleOf(document)).toContain(rule);
  });

  it('takes plain text only from a voice that declares no element', () => {
    expect(readSsml('<speak>one</speak>', 1, { ...voice, ssml: [] })).toMatchObject({
      ok: false,
      refusal: { reason: 'text_invalid', params: { rule: 'the voice does not take the SSML element "speak"' } },
    });
  });

  it('never throws and never speaks markup', () => {
    const piece = fc.constantFrom(
      '<p>',
      '</p>',
      '<break/>',
      '<b>',
      '&amp;',
      '&x;',
      ']]>',
      '<!--',
      'word. ',
      '<![CDATA[',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const steps = read(pieces.join(''));
        return !steps.ok || steps.value.every((step) => !/<(p|b|break)/.test(step.text));
      }),
    );
  });
});

describe('R2 plan of a plain text', () => {
  it('pauses between sentences and blocks and skips what has no sound', () => {
    const plan = planText('One. Two!\n\n…\n\nThree.', 2);
    const steps = [
      { silenceMs: 0, ...said('One.', 2) },
      { silenceMs: 125, ...said('Two!', 2) },
      { silenceMs: 250, ...said('Three.', 2) },
    ];
    expect(plan).toEqual({ ok: true, value: steps });
    expect(planText('… !', 1)).toMatchObject({ ok: false, refusal: { reason: 'text_unspeakable' } });
    const rule = 'the voice does not speak the letters 你 好';
    expect(planText('Hello 你好 world', 1)).toMatchObject({ refusal: { reason: 'text_invalid', params: { rule } } });
    expect(planText('Crème brûlée 😀 for 5 €', 1)).toMatchObject({ ok: true });
  });
});
