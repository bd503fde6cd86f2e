import { chromium, type Browser, type ConsoleMessage, type Page } from 'playwright-core';
import { CHROMIUM, onPath } from '../../.ci/process.mjs';

/** Starts the browser of the machine. */
export const launchChromium = (): Promise<Browser> => {
  const executablePath = onPath(...CHROMIUM);
  if (!executablePath) throw new Error('There is no Chromium on the PATH: npm run setup installs it.');
  // In a container as root it has no sandbox, and little shared memory.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
  return chromium.launch({ executablePath, args });
};

/** Collects what a page complains about, as texts. */
export const complaintsOf = (page: Page): string[] => {
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message: ConsoleMessage) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  return complaints;
};
