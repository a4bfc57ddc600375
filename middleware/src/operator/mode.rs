//! The kill switch by command.

use hotgate_detector::Time;
use hotgate_rules::Mode;
use serde::Serialize;

use super::{
    CommandError, Moment, SERVICE, Who, mode_name, moment::Clocks, serialize_mode,
    serialize_mode_if_any,
};
use crate::{Gate, control::Control, gate::Shared, log};

/// What a command about a mode came to.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ModeChange {
    /// The rule; `None`: the whole file.
    pub rule: Option<String>,
    /// What was commanded.
    #[serde(serialize_with = "serialize_mode")]
    pub commanded: Mode,
    /// What holds now: the lowest of all that have a say.
    #[serde(serialize_with = "serialize_mode")]
    pub mode: Mode,
    /// What else holds it down, where that is lower than what was commanded.
    pub held_by: Option<String>,
}

/// The mode of the whole file, and where it comes from. The lowest holds.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct ModeStatus {
    /// What holds.
    #[serde(serialize_with = "serialize_mode")]
    pub mode: Mode,
    /// What the file says.
    #[serde(serialize_with = "serialize_mode")]
    pub file: Mode,
    /// What `HOTGATE_MODE` said at the start.
    #[serde(serialize_with = "serialize_mode")]
    pub environment: Mode,
    /// The last command, if there was one.
    #[serde(serialize_with = "serialize_mode_if_any")]
    pub commanded: Option<Mode>,
    /// When that was.
    pub commanded_at: Option<Moment>,
}

impl Gate {
    /// Sets the mode of a rule, or of all (`None`), over the file: in force before this returns. The
    /// lowest of the file's, `HOTGATE_MODE` and the last command's holds, so that `Mode::Enforce` only
    /// takes an earlier command back.
    ///
    /// ```
    /// use hotgate::{Gate, Mode};
    ///
    /// let rules = "app = \"shop\"\n[[rule]]\nname = \"api\"\nkey = []\nover = \"10/1m\"\nthrottle = {}\n";
    /// let gate = Gate::builder().rules(rules.parse()?).build()?;
    /// assert_eq!(gate.set_mode(Some("api"), Mode::Observe)?.mode, Mode::Observe);
    /// assert_eq!(gate.set_mode(None, Mode::Off)?.mode, Mode::Off);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When there is no such rule.
    pub fn set_mode(&self, rule: Option<&str>, mode: Mode) -> Result<ModeChange, CommandError> {
        self.shared().set_mode(rule, mode, SERVICE)
    }
}

impl Shared {
    pub(crate) fn set_mode(
        &self,
        rule: Option<&str>,
        mode: Mode,
        who: Who<'_>,
    ) -> Result<ModeChange, CommandError> {
        let mut control = self.control();
        let now = self.clock.now();
        match rule {
            None => {
                control.record.mode = Some(now);
                control.commands.mode = mode;
            }
            Some(rule) => {
                let Control { rules, commands, record, .. } = &mut *control;
                let is_known = |name: &str| rules.rules().iter().any(|rule| *rule.name == *name);
                if !is_known(rule) {
                    return Err(CommandError::unknown_rule(rule, rules));
                }
                record.rule_mode(commands, rule, is_known, now);
                commands.rule_modes.insert(rule.into(), mode);
            }
        }
        self.enforce(&control);
        let change = change(&control, rule, mode);
        drop(control);
        log::mode(&change, who);
        Ok(change)
    }
}

/// What holds after a command, and why, where it is not what was commanded.
fn change(control: &Control, rule: Option<&str>, commanded: Mode) -> ModeChange {
    let Control { rules, commands, .. } = control;
    let whole = |mode| format!("mode = \"{}\" of the file", mode_name(mode));
    let mut says = vec![
        (rules.mode(), whole(rules.mode())),
        (commands.environment, format!("HOTGATE_MODE={}", mode_name(commands.environment))),
    ];
    if let Some(rule) = rules.rules().iter().find(|other| Some(&*other.name) == rule) {
        let by_command = format!("the command \"mode {}\" for all rules", mode_name(commands.mode));
        let own = format!("mode = \"{}\" of the rule in the file", mode_name(rule.mode));
        says.extend([(commands.mode, by_command), (rule.mode, own)]);
    }
    let lowest = says.into_iter().min_by_key(|(mode, _)| *mode);
    let (mode, held_by) = match lowest {
        Some((mode, why)) if mode < commanded => (mode, Some(why)),
        _ => (commanded, None),
    };
    ModeChange { rule: rule.map(str::to_owned), commanded, mode, held_by }
}

pub(super) fn status(control: &Control, clocks: Clocks) -> ModeStatus {
    let Control { rules, commands, record, .. } = control;
    let moment = |at: Time| clocks.moment(at);
    ModeStatus {
        mode: rules.mode().min(commands.environment).min(commands.mode),
        file: rules.mode(),
        environment: commands.environment,
        commanded: record.mode.map(|_| commands.mode),
        commanded_at: record.mode.map(moment),
    }
}
