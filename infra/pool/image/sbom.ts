import type { NpmPackage } from './application.ts';
import type { DebianPackage } from './debian.ts';

/** Returns the packages of an image as a CycloneDX 1.6 document, without a time or a serial number: builds are equal. */
export function sbomOf(node: string, debian: readonly DebianPackage[], npm: readonly NpmPackage[]): string {
  const runtime = { type: 'application', name: 'node', version: node, purl: `pkg:npm/node@${node}` };
  const system = debian.map(({ name, version, sha256 }) => ({
    ...{ type: 'library', name, version, purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}` },
    hashes: [{ alg: 'SHA-256', content: sha256 }],
  }));
  const packages = npm.map(({ name, version, license }) => ({
    ...{ type: 'library', name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` },
    ...(license && { licenses: [{ expression: license }] }),
  }));
  const components = [runtime, ...system, ...packages];
  return `${JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1, components }, null, 1)}\n`;
}
