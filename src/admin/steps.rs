//! Where long work stops on purpose (`faults.stop_work_at`), so that tests can kill it there. Never in a release build.

/// The name of the step to stop at.
#[derive(Debug, Clone, Default)]
pub struct Steps(String);

impl Steps {
    /// What the settings say.
    #[must_use]
    pub fn of(config: &crate::config::Config) -> Self {
        #[cfg(debug_assertions)]
        let step = config.faults.stop_work_at.clone();
        #[cfg(not(debug_assertions))]
        let step = {
            let _has_none = config;
            String::new()
        };
        Self(step)
    }

    /// Goes no further, if this is the step.
    pub(super) fn at(&self, step: &str) {
        if cfg!(debug_assertions) && self.0 == step {
            eprintln!("faults.stop_work_at = {step}");
            loop {
                std::thread::park();
            }
        }
    }
}
