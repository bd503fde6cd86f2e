// Reporter of Vitest for `npm test`: says before the run what it does, and after it which files took longest. The
// default reporter shows the progress in between.

/** Number of files that are named at the end. */
const SLOWEST = 10;

const seconds = (ms) => `${(ms / 1_000).toFixed(1).padStart(6)} s`;

export default class RunReporter {
  onTestRunStart(specifications) {
    const files = new Map();
    for (const { project } of specifications) files.set(project.name, (files.get(project.name) ?? 0) + 1);
    const parts = [...files].map(([name, count]) => `${name} (${count})`);
    console.log(`npm test: ${specifications.length} files of the projects ${parts.join(', ')}`);
    // What a whole run takes on two cores.
    if (files.has('fast') && files.has('installs'))
      console.log('npm test: about 10 minutes on two cores; `npm run test:fast`: about one');
  }

  onTestRunEnd(modules) {
    const slowest = [...modules]
      .sort((a, b) => b.diagnostic().duration - a.diagnostic().duration)
      .slice(0, SLOWEST);
    console.log(`\nThe ${slowest.length} slowest files:`);
    for (const module of slowest)
      console.log(`  ${seconds(module.diagnostic().duration)}  ${module.relativeModuleId}`);
  }
}
