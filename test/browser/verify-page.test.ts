import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildVerifier } from '../../infra/verify/build.ts';
import { ExportedLog } from '../functions/audit/export/exported-log.ts';
import { zipOf } from '../infra/zip-of.ts';
import { type Browser, openBrowser, type Page } from './open-browser.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'auricle-page-'));
const folder = path.join(scratch, 'bundle');
let browser: Browser;

function filesOfBundle() {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return found.map(({ parentPath, name }) => {
    const file = path.join(parentPath, name);
    return [`bundle/${path.relative(folder, file)}`, new Uint8Array(readFileSync(file))] as const;
  });
}

beforeAll(async () => {
  const verifier = [...(await buildVerifier())].map(([name, text]) => [name, new TextEncoder().encode(text)] as const);
  const log = new ExportedLog({ witnessed: true });
  await log.write('ann', 300);
  const asked = await log.ask('ann');
  await log.commit();
  await log.witness();
  const row = await log.finish(asked, { ...log.desk, verifier: new Map(verifier) });
  for (const [name, bytes] of log.files(row)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), bytes);
  }
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
});

const openPage = (): Promise<Page> => browser.open(`file://${path.join(folder, 'verify.html')}`);

async function choose(page: Page, id: string, files: readonly string[]): Promise<void> {
  const { root } = (await page.send('DOM.getDocument')) as { root: { nodeId: number } };
  const { nodeId } = await page.send('DOM.querySelector', { nodeId: root.nodeId, selector: `#${id}` });
  await page.send('DOM.setFileInputFiles', { nodeId, files });
}

/** Drops a file or folder onto the page. */
async function drop(page: Page, file: string): Promise<void> {
  const { x, y } = await page.evaluate<{ x: number; y: number }>(
    "(() => { const box = document.getElementById('drop').getBoundingClientRect(); return { x: box.x + 20, y: box.y + 20 }; })()",
  );
  const data = { items: [], files: [file], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'])
    await page.send('Input.dispatchDragEvent', { type, x, y, data });
}

interface Shown {
  readonly verdict: string;
  readonly state: string;
  readonly title: string;
  readonly said: string;
  readonly facts: string;
  readonly findings: string[];
}

const said = async (page: Page): Promise<Shown> => {
  await page.until(
    "!document.getElementById('result').hidden || /could not/.test(document.getElementById('said').textContent)",
  );
  return page.evaluate(`({
    verdict: document.getElementById('result').dataset.verdict,
    state: document.getElementById('result').dataset.state,
    title: document.getElementById('verdict').textContent,
    said: document.getElementById('said').textContent,
    facts: document.getElementById('facts').innerText,
    findings: [...document.querySelectorAll('#findings li')].map((one) => one.textContent),
  })`);
};

describe('C9 verify.html in Chromium', () => {
  it('verifies a dropped folder without any request', async () => {
    const page = await openPage();
    await drop(page, folder);
    const told = await said(page);
    expect(told).toMatchObject({ verdict: 'witnessed', state: 'fair', findings: [] });
    expect(told.facts).toMatch(/Tenant\s+ann/);
    expect(told.facts).toMatch(/Period\s+2026-\d\d-\d\d .* UTC to 2026-/);
    expect(told.facts).toMatch(/Gaps\s+none/);
    expect(told.said).toMatch(/^Consistent and complete; no key from outside vouches for it\. Code 0/);
    expect(page.requests.filter((url) => !url.startsWith('file:'))).toEqual([]);
    expect(page.complaints).toEqual([]);
    expect(await page.evaluate("document.activeElement.id === 'verdict'")).toBe(true);
  });

  it('C12 colours its border amber for the bundle’s keys, green for the reader’s policy', async () => {
    const page = await openPage();
    const border = () =>
      page.evaluate<string[]>(`[document.getElementById('result'), document.getElementById('verdict')].map(
        (one, at) => at === 0 ? getComputedStyle(one).borderLeftColor : getComputedStyle(one).color)`);
    await drop(page, folder);
    await said(page);
    const amber = await border();
    expect(amber[0]).toBe(amber[1]);
    // The same export once more, by keys from elsewhere: nothing is dropped again.
    await choose(page, 'policy', [path.join(folder, 'policy.txt')]);
    await page.until("document.getElementById('result').dataset.state === 'good'");
    expect(await said(page)).toMatchObject({ verdict: 'witnessed', title: 'Valid, complete, witnessed' });
    expect((await border())[0]).not.toBe(amber[0]);
  });

  it('C12 opens a zip that is dropped on it, and calls anything else no export', async () => {
    const archive = path.join(scratch, 'export.zip');
    writeFileSync(archive, zipOf(filesOfBundle()));
    const page = await openPage();
    await drop(page, archive);
    expect(await said(page)).toMatchObject({ verdict: 'witnessed', findings: [] });
    for (const [name, bytes] of [
      ['picture.png', Buffer.from('89504e470d0a1a0a', 'hex')],
      ['other.zip', zipOf([['manifest.json', Buffer.from('{"name":"an extension"}')]])],
    ] as const) {
      writeFileSync(path.join(scratch, name), bytes);
      const other = await openPage();
      await drop(other, path.join(scratch, name));
      const told = await said(other);
      expect(told).toMatchObject({ verdict: 'no-export', state: 'none', title: 'This is no export' });
      expect(await other.evaluate("/not valid/i.test(document.getElementById('result').innerText)")).toBe(false);
    }
  });

  it('C12 shows entries by page, finds some of them, and prints more than a page', async () => {
    const page = await openPage();
    await drop(page, folder);
    await said(page);
    const table = () =>
      page.evaluate<{ rows: number; range: string }>(
        "({ rows: document.querySelectorAll('#entries tr').length, range: document.getElementById('range').textContent })",
      );
    expect(await table()).toEqual({ rows: 50, range: '1 to 50 of 302' });
    await page.evaluate("document.getElementById('next').click()");
    expect(await table()).toEqual({ rows: 50, range: '51 to 100 of 302' });
    await page.evaluate(
      "(() => { const search = document.getElementById('search'); search.value = 'export.create'; search.dispatchEvent(new Event('input')); })()",
    );
    expect((await table()).rows).toBe(1);
    await page.evaluate("document.querySelector('#entries button').click()");
    expect(await page.evaluate("document.querySelector('#entries pre').textContent")).toContain('"export.create"');
    await page.evaluate(
      "(() => { const search = document.getElementById('search'); search.value = ''; search.dispatchEvent(new Event('input')); })()",
    );
    const { data } = await page.send('Page.printToPDF', { printBackground: false });
    const pages =
      Buffer.from(String(data), 'base64')
        .toString('latin1')
        .match(/\/Type\s*\/Page\b/g) ?? [];
    expect(pages.length).toBeGreaterThan(4);
    expect(await table()).toEqual({ rows: 50, range: '1 to 50 of 302' });
  });

  it('verifies an archive, and reports the change in a changed one', async () => {
    const archive = path.join(scratch, 'bundle.zip');
    const pack = () => writeFileSync(archive, zipOf(filesOfBundle()));
    pack();
    const page = await openPage();
    await choose(page, 'archive', [archive]);
    expect((await said(page)).verdict).toBe('witnessed');
    const entries = path.join(folder, 'entries.ndjson');
    const whole = readFileSync(entries, 'utf8');
    writeFileSync(entries, whole.replace('"status":200', '"status":500'));
    pack();
    writeFileSync(entries, whole);
    const changed = await openPage();
    await choose(changed, 'archive', [archive]);
    const told = await said(changed);
    expect(told.verdict).toBe('invalid');
    expect(told.findings).toContain('files: entries.ndjson is not the file that the manifest lists');
  });

  it('says that a head is another, and takes the policy that is given', async () => {
    const head = path.join(scratch, 'head.txt');
    const end = readFileSync(path.join(folder, 'checkpoints/end.txt'), 'utf8');
    writeFileSync(head, end.replace(/\n[^\n]+=\n/, `\n${Buffer.alloc(32, 1).toString('base64')}\n`));
    const page = await openPage();
    await choose(page, 'head', [head]);
    await choose(page, 'policy', [path.join(folder, 'policy.txt')]);
    await drop(page, folder);
    const told = await said(page);
    expect(told.verdict).toBe('diverged');
    expect(told.facts).toMatch(/Believed\s+policy given/);
  });

  it('is readable: every control has a name, every text contrast, light and dark', async () => {
    const page = await openPage();
    await drop(page, folder);
    await said(page);
    const { nodes } = (await page.send('Accessibility.getFullAXTree')) as {
      nodes: { role?: { value: string }; name?: { value: string }; ignored: boolean }[];
    };
    const named = nodes.filter(
      ({ ignored, role }) => !ignored && /^(button|heading|DisclosureTriangle)$/.test(role?.value ?? ''),
    );
    expect(named.length).toBeGreaterThan(4);
    expect(named.filter(({ name }) => !name?.value)).toEqual([]);
    for (const scheme of ['light', 'dark']) {
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      const low = await page.evaluate<string[]>(CONTRAST);
      expect(low, scheme).toEqual([]);
    }
  });
});

/** Elements with text of their own whose contrast to what is behind them is below 4.5 (WCAG 2.2, AA). */
const CONTRAST = `(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('main *')].filter((one) => one.checkVisibility() &&
    [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '')).flatMap((one) => {
      const [a, b] = [light(parse(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      return ratio < 4.5 ? [one.tagName + ' ' + one.textContent.slice(0, 30) + ' ' + ratio.toFixed(2)] : [];
    });
})()`;
